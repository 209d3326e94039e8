/* Which kernels are chosen on processors that lack a feature: dispatch.c as it is, on a processor that is made up.
 *
 * Prints what fails and, last, "N passed, N failed"; exits with 1 where anything failed. */
#include "check.h"

/* What this processor has: every feature but one. */
static const char *lacking = "";

static inline int has(const char *feature)
{
    return strcmp(feature, lacking) != 0;
}

/* A second copy beside the one of the library, under names of its own. */
#define spin_target_select chosen_select
#define spin_target_current chosen_current
#define spin_target_name chosen_name
#define spin_target_supported chosen_supported
#define spin_target_row chosen_row
#undef __builtin_cpu_supports
#define __builtin_cpu_supports(feature) has(feature)
#include "dispatch.c"

#ifdef SPIN_HAVE_X86_TARGETS
/* What each target is compiled for (the pragmas in its file), best first; the last one needs nothing. */
static const struct {
    const char *name, *needs[7];
} wanted[] = {{"x86_v4", {"avx512f", "avx512dq", "avx512vl", "avx512bw", "avx2", "fma", NULL}},
              {"x86_v3", {"avx2", "fma", NULL}},
              {"baseline", {NULL}}};
#else
static const struct {
    const char *name, *needs[7];
} wanted[] = {{"baseline", {NULL}}};
#endif

enum { TARGETS = sizeof wanted / sizeof wanted[0] };

static int runs(int target)
{
    for (int i = 0; wanted[target].needs[i] != NULL; i++) {
        if (strcmp(wanted[target].needs[i], lacking) == 0) {
            return 0;
        }
    }
    return 1;
}

static void a_target_is_refused_where_any_of_its_features_is_lacking(void)
{
    static const char *const features[] = {"", "avx512f", "avx512dq", "avx512vl", "avx512bw", "avx2", "fma"};
    for (size_t f = 0; f < sizeof features / sizeof features[0]; f++) {
        int best = TARGETS - 1;
        lacking = features[f];
        for (int t = TARGETS - 1; t >= 0; t--) {
            check(spin_target_select("baseline") == 0, "without %s: the baseline", lacking);
            check(spin_target_supported((size_t)t) == runs(t), "without %s: %s", lacking, wanted[t].name);
            check(spin_target_select(wanted[t].name) == (runs(t) ? 0 : -2), "without %s: select %s", lacking,
                  wanted[t].name);
            check(strcmp(spin_target_current(), wanted[runs(t) ? t : TARGETS - 1].name) == 0,
                  "without %s: a refused target changes nothing, %s", lacking, wanted[t].name);
            best = runs(t) ? t : best;
        }
        check(spin_target_select(NULL) == 0 && strcmp(spin_target_current(), wanted[best].name) == 0,
              "without %s: %s, not the best", lacking, spin_target_current());
        check(spin_target_row()->name == spin_target_current(), "without %s: the row in use", lacking);
    }
}

static void the_list_ends_and_other_names_are_unknown(void)
{
    for (size_t t = 0; t < TARGETS; t++) {
        check(strcmp(spin_target_name(t), wanted[t].name) == 0, "target %zu is %s", t, spin_target_name(t));
    }
    check(spin_target_name(TARGETS) == NULL && !spin_target_supported(TARGETS), "the list ends");
    check(spin_target_select("x86_v") == -1 && spin_target_select("baselines") == -1, "names that are nearly one");
}

int main(void)
{
    check(strcmp(spin_target_current(), "baseline") == 0, "before anything is selected");
    a_target_is_refused_where_any_of_its_features_is_lacking();
    the_list_ends_and_other_names_are_unknown();
    return report();
}
