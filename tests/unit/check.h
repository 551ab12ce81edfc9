/* check.h - cmocka, with the headers it forgets to include and rows with names. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* FOR_ROWS(row, rows) { ... }: each row has a `name`, printed so that a failure says which one. */
#define FOR_ROWS(row, table)                                       \
	for (__typeof__(&(table)[0]) row = (table);                \
	     row < (table) + sizeof(table) / sizeof((table)[0]) && \
	     (print_message("    row: %s\n", row->name), 1);       \
	     row++)
