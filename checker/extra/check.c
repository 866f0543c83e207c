/* Check a certificate file of maxmargin against data in svmlight text, in exact arithmetic: check proof.json data.svm

   Independent of check.py, in C99 with GMP and OpenSSL: cc -std=c99 -O2 -o check checker/extra/check.c -lcrypto -lgmp -lm
   docs/certificate_format.md has the format; docs/explanation/exact_checks.md has the
   proofs. The exit status is 0 for VALID, 1 for INVALID and 3 for UNSUPPORTED. The certificate has to be laid out as
   maxmargin writes it, up to each space and end of line. */
#include <ctype.h>
#include <float.h>
#include <gmp.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"
#define SPACES " \t\n\v\f\r"
#define LAYOUT "a file is not laid out as this program reads it."
#define EXPECT(...) support(scan(__VA_ARGS__), LAYOUT)
enum { W, WEIGHTS, DUAL, HARD = 0, AUGMENTED = 0, FREE, NONE }; /* of KINDS, LOSSES and INTERCEPTS */
typedef long long whole;
typedef struct { /* a binary problem; the intercept is the column 0, of entries rho and with the weight b / rho */
    char *positive, **texts[3]; /* texts: the numbers of the lines of each kind by position, from 1; NULL if left out */
    double C, p, scaling, rho, lower, upper;
    whole power, exponent, intercept, seen, some, weighted; /* exponent: of slacks; some: rows of weights above 0 */
    mpq_t *w, *v, G, least, losses; /* v_j = sum_i alpha_i y_i x_ij; G: the gains of alpha; least: the least margin */
} part;

static char *LOSSES[] = {"hard", "hinge", "squared_hinge"}, *INTERCEPTS[] = {"augmented", "free", "none"};
static char *KINDS[] = {"{'w': [", "{'weights': [", "{'dual': ["}; /* of lines with numbers */
static part *parts;
static struct { whole column; double x; } *row; /* the entries other than 0 of the present row, from 1 */
static char *digest, *cursor, *label, canonical[400]; /* label: that of the present row */
static whole rows, columns, part_count, first_index, row_count, entry_count, last_column;
static EVP_MD_CTX *hash;

static void require(int holds, const char *failure) { if (!holds) fprintf(stderr, "INVALID: %s\n", failure), exit(1); }
static void support(int holds, const char *limit) { if (!holds) fprintf(stderr, "UNSUPPORTED: %s\n", limit), exit(3); }

static void *zeros(whole last, size_t size) { /* for the positions 0 to last */
    void *array = calloc((size_t)last + 1, size);
    return support(array != NULL, "the memory does not suffice."), array;
}

static char *content(const char *path, const char *spaces) {
    FILE *file = fopen(path, "rb");
    long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    support(size >= 0, "a file cannot be opened, or is a pipe.");
    char *text = zeros(size, 1), *s = text;
    rewind(file), support(fread(text, 1, (size_t)size, file) == (size_t)size, "a file cannot be read.");
    while (*s && (isprint((unsigned char)*s) || strchr(spaces, *s))) s++;
    support(s == text + size, "a file holds characters other than those of ASCII text.");
    return fclose(file), text;
}

static whole find(const char *text, char **list) {
    whole k = 0;
    while (k < 3 && strcmp(list[k], text)) k++;
    return require(k < 3, "an unknown loss or intercept."), k;
}

static int is_number(const char *text, double *x) { /* as float of Python */
    char *end;
    *x = strtod(text, &end);
    int read = end > text && !*end, decimal = !text[strspn(text, DIGITS ".eE+-")];
    return support(!read || (decimal && isfinite(*x)), "a number of the data is infinite, NaN or hexadecimal."), read;
}

static char *hexadecimal(double x) { /* as float.hex of Python */
    sprintf(canonical, x == 0 ? "%.1a" : "%.13a", x);
    support(!(fabs(x) < DBL_MIN) || strstr(canonical, "0x0."), "the C library shifts the least numbers.");
    return canonical;
}

static double real(const char *text) { /* a float64 number of the certificate, which may be infinite or NaN */
    double x = strtod(text, NULL);
    return support(!strcmp(hexadecimal(x), text), LAYOUT), x;
}

static void read_number(mpq_t a, const char *text, whole kind) { /* dual variables may be quotients of integers */
    int quotient = kind == DUAL && !text[strspn(text, DIGITS "/")];
    double x = quotient ? 0 : real(text);
    require(isfinite(x) && (x >= 0 || kind == W), "a number is out of its bounds."), mpq_set_d(a, x);
    support(!quotient || (!mpq_set_str(a, text, 10) && mpz_sgn(mpq_denref(a))), LAYOUT), mpq_canonicalize(a);
}

static void raise(mpq_t x, unsigned long p) {
    mpz_pow_ui(mpq_numref(x), mpq_numref(x), p), mpz_pow_ui(mpq_denref(x), mpq_denref(x), p);
}

static whole integer(void) {
    size_t n = strspn(cursor, DIGITS);
    support(n > 0 && n < 19 && (n == 1 || *cursor != '0'), "an integer has a sign, leading zeros, or 19 digits.");
    return strtoll(cursor, &cursor, 10);
}

static char *string(void) {
    char *start = cursor + 1, *end = *cursor == '"' ? start + strcspn(start, "\"\\\n") : cursor;
    support(end > cursor && *end == '"', "a text of the certificate has an escape, or no end.");
    return *end = 0, cursor = end + 1, start;
}

static int scan(const char *format, ...) { /* ' stands for ", %d for an integer, %s for a string, %a for a number */
    int same = 1;
    va_list to;
    va_start(to, format);
    for (char *start = cursor; same && *format; format++) {
        if (*format != '%') same = *cursor == (*format == '\'' ? '"' : *format), cursor = same ? cursor + 1 : start;
        else if (*++format == 'd') *va_arg(to, whole *) = integer();
        else if (*format == 's') *va_arg(to, char **) = string();
        else *va_arg(to, double *) = real(string());
    }
    return va_end(to), same;
}

static void read_part(part *a) { /* but for the key "positive" */
    char *loss, *intercept;
    double b;
    EXPECT("%s, 'loss': %s, 'C': %a, 'p': %a, 'power': %d, ", &a->positive, &loss, &a->C, &a->p, &a->power);
    EXPECT("'intercept': %s, 'scaling': %a, 'b': %a, ", &intercept, &a->rho, &b);
    EXPECT("'lower': %a, 'upper': %a}\n", &a->lower, &a->upper);
    a->exponent = find(loss, LOSSES), a->intercept = find(intercept, INTERCEPTS), a->scaling = a->rho;
    int bounded = isfinite(b) && isfinite(a->lower) && a->lower >= 0 && a->upper >= 0 && a->C > 0 && a->p >= 1;
    require(bounded && isfinite(a->rho) && a->rho > 0, "a number is out of its bounds.");
    require((a->power == 1 || a->power == 2) && (a->intercept != NONE || b == 0), "a wrong power, or b.");
    support(a->exponent == HARD || isfinite(a->C), "a loss has no finite C.");
    for (whole k = W; k <= DUAL; k++) a->texts[k] = zeros(k == W ? columns : rows, sizeof *a->texts[k]);
    a->w = zeros(columns, sizeof *a->w), a->v = zeros(columns, sizeof *a->v);
    for (whole j = 0; j <= columns; j++) mpq_inits(a->w[j], a->v[j], NULL);
    mpq_inits(a->G, a->least, a->losses, NULL), mpq_set_d(a->w[0], b), mpq_set_d(a->least, a->rho);
    if (a->intercept == AUGMENTED) mpq_div(a->w[0], a->w[0], a->least);
    else a->rho = a->intercept == FREE;
}

static void read_pairs(part *a) { /* of a position and a number */
    whole place, kind;
    char *text;
    for (kind = W; !scan(KINDS[kind]); kind++) support(kind < DUAL, LAYOUT);
    do {
        EXPECT("[%d, %s]", &place, &text);
        require(0 < place && place <= (kind == W ? columns : rows) && !a->texts[kind][place], "a wrong position.");
        a->texts[kind][place] = text;
        if (kind == W) read_number(a->w[place], text, W);
    } while (scan(", "));
    EXPECT("]}\n");
}

static void read_certificate(void) {
    whole version, lines = 1, found = 0;
    char *text;
    EXPECT("{'format': %s, 'version': %d, 'rows': %d, 'columns': %d, ", &text, &version, &rows, &columns);
    require(!strcmp(text, "maxmargin certificate") && version == 1, "unknown format.");
    EXPECT("'sha256': %s, 'label': ", &digest);
    support(scan("null, 'names': "), "the data are delimited text, which check.py reads.");
    if (!scan("[")) EXPECT("null");
    else for (string(); !scan("]"); string()) EXPECT(", ");
    EXPECT(", 'first_index': %d, 'parts': %d}\n", &first_index, &part_count);
    for (parts = zeros(part_count, sizeof *parts); !scan("{'end': "); lines++) {
        int starts = scan("{'positive': ");
        require(*cursor, "the certificate is cut off."), support(starts ? found < part_count : found > 0, LAYOUT);
        if (starts) read_part(&parts[found++]);
        else read_pairs(&parts[found - 1]);
    }
    require(integer() == lines && found == part_count && found > 0, "the certificate is cut off.");
    support(scan("}\n") && !*cursor, LAYOUT);
}

static void add_to_hash(const char *text) { support(EVP_DigestUpdate(hash, text, strlen(text)), "SHA-256 fails."); }

static void start_row(char *text) { /* with its label: whole numbers without sign or point, others in hexadecimal */
    static char number[400];
    double x;
    int numeric = is_number(text, &x);
    label = numeric ? strcpy(number, hexadecimal(x)) : text, entry_count = 1, last_column = -first_index;
    if (numeric && x == floor(x)) sprintf(number, "%.0f", x == 0 ? 0 : x); /* exact where C prints all digits */
    add_to_hash(label);
}

static void add_entry(whole column, const char *text) {
    double x;
    support(is_number(text, &x), "an entry of a row is no decimal number.");
    support(column > last_column, "the columns of a row do not ascend.");
    if (last_column = column, x == 0) return;
    require(0 < column && column <= columns, "a row has a column of no feature.");
    row[entry_count].column = column, row[entry_count++].x = x;
    sprintf(canonical, " %lld:", column), add_to_hash(canonical), add_to_hash(hexadecimal(x));
}

static void add_multiple(mpq_t sum, const mpq_t a, double x) { /* sum + a x */
    mpq_t term;
    mpq_init(term), mpq_set_d(term, x), mpq_mul(term, term, a), mpq_add(sum, sum, term), mpq_clear(term);
}

/* Add the present row to the sums of a problem: losses, the least margin, the gains G, and v. */
static void add_to_sums(part *a) {
    const char *weight = a->texts[WEIGHTS][row_count], *dual = a->texts[DUAL][row_count];
    int sign = strcmp(label, a->positive) ? -1 : 1;
    mpq_t s, alpha, sum, term;
    mpq_inits(s, alpha, sum, term, NULL), mpq_set_ui(s, 1, 1);
    if (weight) read_number(s, weight, WEIGHTS), a->weighted += mpq_cmp_ui(s, 1, 1) != 0;
    if (dual) read_number(alpha, dual, DUAL);
    row[0].x = a->rho, a->seen |= sign == 1;
    for (whole k = 0; k < entry_count; k++) add_multiple(sum, a->w[row[k].column], sign * row[k].x);
    if (mpq_sgn(s) && (!a->some++ || mpq_cmp(sum, a->least) < 0)) mpq_set(a->least, sum);
    mpq_set_ui(term, 1, 1), mpq_sub(sum, term, sum); /* the slack */
    if (mpq_sgn(sum) > 0) raise(sum, a->exponent), mpq_mul(sum, sum, s), mpq_add(a->losses, a->losses, sum);
    if (mpq_sgn(alpha)) {
        if (a->exponent) mpq_set_d(term, a->C), mpq_mul(s, s, term); /* the cap of hinge losses */
        require(mpq_sgn(s) && (a->exponent != 1 || mpq_cmp(alpha, s) <= 0), "a dual variable is infeasible.");
        mpq_add(a->G, a->G, alpha);
        if (a->exponent == 2) { /* less alpha_i^2 / (4 C s_i), rounded up to a multiple of 2^-1400 */
            mpq_mul(term, alpha, alpha), mpq_div(term, term, s), mpq_mul_2exp(term, term, 1398);
            mpz_cdiv_q(mpq_numref(term), mpq_numref(term), mpq_denref(term)), mpz_set_ui(mpq_denref(term), 1);
            mpq_div_2exp(term, term, 1400), mpq_sub(a->G, a->G, term);
        }
        for (whole k = 0; k < entry_count; k++) add_multiple(a->v[row[k].column], alpha, sign * row[k].x);
    }
    mpq_clears(s, alpha, sum, term, NULL);
}

static void end_row(void) {
    require(++row_count <= rows, "these are not the data of the certificate."); /* positions count from 1 */
    for (whole k = 0; k < part_count; k++) add_to_sums(&parts[k]);
    add_to_hash("\n");
}

static void read_svmlight(char *next) {
    for (char *line; (line = next);) {
        if ((next = strpbrk(line, "\r\n"))) *next++ = 0;
        line[strcspn(line, "#")] = 0;
        if (!(line = strtok(line, SPACES))) continue;
        for (start_row(line); (cursor = strtok(NULL, SPACES));) {
            if (scan("qid:")) continue;
            whole column = integer() - first_index + 1;
            EXPECT(":"), add_entry(column, cursor);
        }
        end_row();
    }
}

/* Decide |v|_p <= limit, or for power 2 half its square <= limit, where inverse is 1 / p. */
static int norm_at_most(mpq_t *v, whole from, const mpq_t inverse, whole power, const mpq_t limit) {
    int known = mpz_cmp_ui(mpq_numref(inverse), 1) <= 0 && mpz_cmp_ui(mpq_denref(inverse), 64) <= 0;
    whole p = known ? (whole)mpz_get_ui(mpq_denref(inverse)) : 1; /* 1 for the maximum */
    mpq_t square, total, term;
    mpq_inits(square, total, term, NULL), mpq_abs(square, limit), mpq_mul(square, square, limit);
    if (power == 2) mpq_mul_2exp(square, limit, 1); /* of which |v|_p^2 is at most */
    for (whole j = from; j <= columns; j++) {
        mpq_abs(term, v[j]), raise(term, p);
        if (mpq_sgn(inverse)) mpq_add(total, total, term);
        else if (mpq_cmp(term, total) > 0) mpq_set(total, term);
    }
    support(known || mpq_sgn(square) <= 0 || !mpq_sgn(total), "the norm has an exponent not whole, or above 64.");
    if (mpq_sgn(square) > 0) raise(total, 2), raise(square, p); /* (sum_j |v_j|^p)^2 <= square^p */
    return mpq_cmp(total, square) <= 0;
}

static void check_bounds(part *a) {
    int below = a->lower == 0, above = isinf(a->upper), from = a->intercept != AUGMENTED;
    mpq_t p, q, x, y, zero; /* 1 / p and 1 / q = 1 - 1 / p */
    mpq_inits(p, q, x, y, zero, NULL), mpq_set_ui(q, 1, 1);
    if (isfinite(a->p)) mpq_set_d(p, a->p), mpq_inv(p, p);
    mpq_sub(q, q, p), mpq_set_d(x, below ? 1 : a->lower), mpq_set_d(y, above ? 0 : a->upper);
    require(a->seen && (a->intercept != FREE || !mpq_sgn(a->v[0])), "unbalanced, or a class without rows.");
    if (a->exponent == HARD) { /* lower <= min m_i / |w|_q, and |v|_p / sum alpha_i <= upper */
        mpq_div(x, a->least, x), mpq_mul(y, y, a->G);
        int margin = a->some && mpq_sgn(a->least) > 0 && !norm_at_most(a->w, from, q, 1, zero); /* of w other than 0 */
        below = below || (margin && norm_at_most(a->w, from, q, 1, x));
        above = above || (mpq_sgn(a->G) > 0 && norm_at_most(a->v, from, p, 1, y));
    } else { /* lower <= G - |v|_p^2 / 2 or G / max(1, |v|_p), and |w|_q^2 / 2 or |w|_q <= upper - losses */
        int enough = mpq_cmp(a->G, x) >= 0;
        (a->power == 1 ? mpq_div : mpq_sub)(x, a->G, x);
        below = below || (enough && norm_at_most(a->v, from, p, a->power, x));
        mpq_set_d(x, a->C), mpq_mul(x, x, a->losses), mpq_sub(y, y, x);
        above = above || norm_at_most(a->w, from, q, a->power, y);
    }
    require(below && above, "a bound is not proved.");
    printf("class '%s': %s, power %lld, intercept %s, C = %.17g, p = %.17g, scaling = %.17g\n", a->positive,
           LOSSES[a->exponent], a->power, INTERCEPTS[a->intercept], a->C, a->p, a->scaling);
    printf("  %lld rows have weights other than 1, %lld of them 0\n  ", a->weighted, rows - a->some);
    if (a->lower > 0) printf("%.17g <= ", a->lower);
    printf("best %s <= %.17g\n", a->exponent == HARD ? "margin" : "objective", a->upper);
}

int main(int count, char **paths) {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned size;
    support(count == 3 && !strstr(paths[2], ".gz"), "the arguments are the certificate and the data, not compressed.");
    hash = EVP_MD_CTX_new();
    support(hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL), "SHA-256 fails.");
    cursor = content(paths[1], "\n"), read_certificate();
    row = zeros(columns, sizeof *row); /* row[0] is that of the intercept */
    read_svmlight(content(paths[2], SPACES));
    support(EVP_DigestFinal_ex(hash, bytes, &size), "SHA-256 fails.");
    for (unsigned k = 0; k < size; k++) sprintf(canonical + 2 * k, "%02x", bytes[k]);
    require(row_count == rows && !strcmp(canonical, digest), "these are not the data of the certificate.");
    for (whole k = 0; k < part_count; k++) check_bounds(&parts[k]);
    return puts("VALID"), 0;
}
