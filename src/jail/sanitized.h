/* sanitized.h - 1 in a build with the address sanitizer, whose own needs nobody can list: such a
 * build is for tests, and is confined less. */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif
