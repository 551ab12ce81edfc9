/* list.h - lists whose links are in their elements: struct x *next, **prev. `prev` is the pointer
 * that points at the element: in the element before it, or the list itself. An element that is all
 * zero is in no list; a list that is NULL is empty.
 *
 * A queue is a struct with such a list `first`, and `last`: where the next element goes.
 *
 * These are macros, so that the compiler checks the type of every element. Arguments are evaluated
 * once.
 */
#pragma once

#include <stddef.h>

/* Put x at *at: the list, or the `next` of the element that comes before it. */
#define list_add(at, x) list_add_by(at, x, next, prev)
/* Fine when x is in no list. x->next stays, for those who walk along the list. */
#define list_remove(x) list_remove_by(x, next, prev)

/* Each element x of a list, which may remove x itself, and no other. */
#define list_each(type, x, list) \
	for (type *x = (list), *x##_next; x && (x##_next = x->next, 1); x = x##_next)

#define queue_init(q)      ((void)((q)->last = &(q)->first))
#define queue_add(q, x)    queue_add_by(q, x, next, prev)
#define queue_remove(q, x) queue_remove_by(q, x, next, prev)
/* Remove the first and return it; NULL: the queue is empty. */
#define queue_take(q)                                  \
	({                                             \
		__auto_type take_q_ = (q);             \
		__auto_type first_ = take_q_->first;   \
		if (first_)                            \
			queue_remove(take_q_, first_); \
		first_;                                \
	})
/* All of `from` goes to the end of `to`. */
#define queue_move(to, from)                            \
	({                                              \
		__auto_type to_ = (to);                 \
		__auto_type from_ = (from);             \
		if (from_->first) {                     \
			from_->first->prev = to_->last; \
			*to_->last = from_->first;      \
			to_->last = from_->last;        \
			from_->first = NULL;            \
			queue_init(from_);              \
		}                                       \
	})

/* The same with links of other names, for an element of two lists. */
#define list_add_by(at, x, next, prev)              \
	({                                          \
		__auto_type x_ = (x);               \
		__typeof__(&x_->next) at_ = (at);   \
		x_->next = *at_;                    \
		x_->prev = at_;                     \
		if (x_->next)                       \
			x_->next->prev = &x_->next; \
		*at_ = x_;                          \
	})
#define list_remove_by(x, next, prev)                      \
	({                                                 \
		__auto_type x_ = (x);                      \
		if (x_->prev) {                            \
			*x_->prev = x_->next;              \
			if (x_->next)                      \
				x_->next->prev = x_->prev; \
			x_->prev = NULL;                   \
		}                                          \
	})
#define queue_add_by(q, x, next, prev)                     \
	({                                                 \
		__auto_type q_ = (q);                      \
		__auto_type added_ = (x);                  \
		list_add_by(q_->last, added_, next, prev); \
		q_->last = &added_->next;                  \
	})
#define queue_remove_by(q, x, next, prev)          \
	({                                         \
		__auto_type q_ = (q);              \
		__auto_type gone_ = (x);           \
		if (gone_->prev && !gone_->next)   \
			q_->last = gone_->prev;    \
		list_remove_by(gone_, next, prev); \
	})
