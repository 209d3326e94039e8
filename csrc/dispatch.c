/* Which kernels run: a table, best first, and the row in use. */
#include "kernels.h"

#include <string.h>

#define SPIN_ROW(target)                                                                                            \
    {target##_float64_spin, target##_float32_spin, target##_int64_spin, target##_int32_spin}

static int always(void)
{
    return 1;
}

#ifdef SPIN_HAVE_X86_TARGETS
/* Feature by feature: names of levels ("x86-64-v4") are not known to every compiler. */
static int has_x86_v3(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_x86_v4(void)
{
    return has_x86_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
#endif

static const spin_target table[] = {
#ifdef SPIN_HAVE_X86_TARGETS
    {"x86_v4", has_x86_v4, {x86_v4_float64_spin, x86_v3_float32_spin, x86_v4_int64_spin, x86_v3_int32_spin}},
    {"x86_v3", has_x86_v3, SPIN_ROW(x86_v3)},
#endif
    {"baseline", always, SPIN_ROW(baseline)},
};

#define SPIN_TARGETS (sizeof table / sizeof table[0])

/* Right before anything is selected; written by spin_target_select alone, which runs once, when the library is
 * loaded. */
static const spin_target *current = &table[SPIN_TARGETS - 1];

int spin_target_select(const char *name)
{
    for (size_t i = 0; i < SPIN_TARGETS; i++) {
        if (name != NULL && strcmp(name, table[i].name) != 0) {
            continue;
        }
        if (table[i].supported()) {
            current = &table[i];
            return 0;
        }
        if (name != NULL) {
            return -2;
        }
    }
    return -1;
}

const char *spin_target_current(void)
{
    return current->name;
}

const char *spin_target_name(size_t i)
{
    return i < SPIN_TARGETS ? table[i].name : NULL;
}

int spin_target_supported(size_t i)
{
    return i < SPIN_TARGETS && table[i].supported();
}

const spin_target *spin_target_row(void)
{
    return current;
}
