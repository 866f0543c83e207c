/* Check a certificate file of maxmargin against the data, in exact arithmetic: check proof.json data.svm

   Independent of check.py, in C99 with GMP: cc -O2 -o check check.c -lgmp -lm. docs/certificate_format.md has the format,
   and what is not supported here; docs/explanation/exact_checks.md has the proofs. The exit status is 0 for VALID, 1 for
   INVALID and 3 for UNSUPPORTED. The objects of the certificate hold the keys in the order in which maxmargin writes them. */
#include <gmp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 1074 }; /* every float64 number is an integer in units of 2^-1074 */
enum { SIGNED = 1, RATIONAL = 2, UNBOUNDED = 4, POSITIVE = 8 }; /* what a number of the certificate may, or has to be */
#define DIGITS "0123456789"
#define SPACES " \t\n\v\f\r"
typedef long long whole;
typedef struct { enum { ABSENT, FINITE, INFINITE } is; mpq_t q; } number;
typedef struct { whole column; double x; mpz_t units; } entry;
typedef struct { /* of a binary problem; the intercept is the column 0, of entries rho */
    char *positive, *loss, *intercept;
    int exponent, power, seen, some; /* some: there is a row with weight */
    number C, p, scaling, b, lower, upper, *w, *weights, *dual, *v;
    mpz_t rho, W, D, least, losses; /* w has the unit 1 / W, alpha 1 / D */
    mpq_t G;
} part;

static part *parts;
static entry *row; /* the entries of the present row, from 1 */
static size_t part_count, name_count, entry_count, entry_room;
static whole rows, columns, first_index, rows_read;
static char **names, *label, *digest, *cursor;
static int undecided;

static void require(int holds, const char *failure) { if (!holds) fprintf(stderr, "INVALID: %s\n", failure), exit(1); }

static void support(int holds, const char *limit) { if (!holds) fprintf(stderr, "UNSUPPORTED: %s\n", limit), exit(3); }

static void *resized(void *old, size_t count, size_t size) {
    require(count <= SIZE_MAX / 2 / size && (old = realloc(old, count * size + 1)), "the memory does not suffice.");
    return old;
}

static char *content(const char *path) {
    size_t size = 0, room = 1 << 16, got;
    char *text = resized(NULL, room, 1);
    FILE *file = fopen(path, "rb");
    require(file != NULL, "a file cannot be opened.");
    while ((got = fread(text + size, 1, room - 1 - size, file)) > 0)
        if ((size += got) == room - 1) text = resized(text, room *= 2, 1);
    require(!ferror(file) && !fclose(file), "a file cannot be read.");
    text[size] = 0;
    for (unsigned char *s = (unsigned char *)text; s < (unsigned char *)text + size; s++)
        support(*s && *s < 0x80 && (*s < 0x1C || *s > 0x1F), "a file holds characters other than those of ASCII text.");
    return text;
}

static char *next_line(char **rest) { /* without its end, "\n", "\r" or "\r\n"; NULL after the last line */
    char *line = *rest, *end = line + strcspn(line, "\r\n");
    if (!*line) return NULL;
    *rest = end + (end[0] == '\r' && end[1] == '\n' ? 2 : *end != 0);
    *end = 0;
    return line;
}

/* Numbers and labels */

static int read_real(char *text, double *x) { /* as float of Python, except underscores */
    static const char *words[] = {"infinity", "inf", "nan"};
    char *end, *s = text += strspn(text, SPACES);
    s += *s == '+' || *s == '-';
    int known = strspn(s, DIGITS ".eE+-") > 0 && strpbrk(s, DIGITS) && *s != '+' && *s != '-';
    for (int k = 0; k < 3 && !known; k++) {
        size_t n = strlen(words[k]), i = 0;
        while (i < n && (s[i] | 0x20) == words[k][i]) i++;
        known = i == n && !s[n + strspn(s + n, SPACES)];
    }
    if (known && s[0] == '0' && (s[1] | 0x20) == 'x') known = 0; /* which strtod reads */
    *x = known ? strtod(text, &end) : 0;
    return known && !end[strspn(end, SPACES)];
}

static char *hexadecimal(double x, char *text) { /* of a number other than 0, as by float.hex in Python */
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7FF);
    const char *sign = x < 0 ? "-" : "";
    if (exponent == 0x7FF) sprintf(text, "%s%s", sign, x == x ? "inf" : "nan");
    else sprintf(text, "%s0x%d.%013" PRIx64 "p%+d", sign, exponent > 0, bits & (((uint64_t)1 << 52) - 1),
                 (exponent ? exponent : 1) - 1023);
    return text;
}

static char *label_of(char *text, char *room) { /* whole numbers without sign or point, others in hexadecimal */
    double x;
    int is_number = read_real(text, &x);
    text += strspn(text, SPACES);
    for (size_t n = strlen(text); n && strchr(SPACES, text[n - 1]);) text[--n] = 0;
    if (!is_number) return text;
    if (!isfinite(x) || x != floor(x)) return hexadecimal(x, room);
    sprintf(room, "%.0f", x == 0 ? 0 : x); /* exact in the C libraries that print all digits */
    return room;
}

static void read_number(number *a, const char *text, int may) { /* a hexadecimal float, a quotient of integers, or inf */
    const char *s = text + (*text == '-');
    size_t n = strspn(s, DIGITS), below = s[n] == '/' ? strspn(s + n + 1, DIGITS) : 0;
    mpq_init(a->q);
    a->is = may & UNBOUNDED && !strcmp(text, "inf") ? INFINITE : FINITE;
    if (a->is == INFINITE) return;
    if (s[0] == '0' && s[1] == 'x') {
        n = strspn(s + 4 * (strlen(s) > 4), DIGITS "abcdef");
        require(strlen(s) > 6 && (s[2] == '0' || s[2] == '1') && s[3] == '.' && n && s[4 + n] == 'p', "a wrong number.");
        const char *power = s + 6 + n;
        size_t most = strspn(power, DIGITS);
        require((power[-1] == '+' || power[-1] == '-') && most && most < 5 && !power[most], "a wrong number.");
        double x = strtod(text, NULL);
        require(isfinite(x), "a number is beyond the float64 numbers.");
        mpq_set_d(a->q, x);
    } else {
        require(n && (!s[n] || (below && !s[n + 1 + below])) && !mpq_set_str(a->q, text, 10), "a wrong number.");
        require(mpz_sgn(mpq_denref(a->q)), "a quotient by 0.");
        mpq_canonicalize(a->q);
        mpz_srcptr den = mpq_denref(a->q);
        int dyadic = mpz_popcount(den) == 1 && mpz_sizeinbase(den, 2) <= BITS + 1;
        size_t bits = mpz_sizeinbase(mpq_numref(a->q), 2), zeros = bits > 1 ? mpz_scan1(mpq_numref(a->q), 0) : 0;
        int fits = dyadic && bits <= 1023 + mpz_sizeinbase(den, 2) && bits - zeros <= 53;
        require(may & RATIONAL || fits, "a number is no float64 number.");
    }
    require(may & SIGNED || mpq_sgn(a->q) >= (may & POSITIVE ? 1 : 0), "a number is too small.");
}

static void to_units(mpz_t units, const mpq_t a) { /* of 2^-1074; a is a float64 number */
    mpz_mul_2exp(units, mpq_numref(a), BITS + 1 - mpz_sizeinbase(mpq_denref(a), 2));
}

/* The certificate */

static int taken(char c) { return *(cursor += strspn(cursor, " \t\n\r")) == c ? cursor++, 1 : 0; }

static void token(char c) { require(taken(c), "a line of the certificate is not understood."); }

static char *string(void) { /* decoded in place */
    char *to, *start = to = (token('"'), cursor);
    for (; *cursor != '"'; *to++ = *cursor++) {
        require(*cursor >= 0x20, "a text of the certificate is wrong.");
        if (*cursor == '\\') support(*++cursor == '"' || *cursor == '\\', "a text of the certificate has an escape.");
    }
    cursor++, *to = 0;
    return start;
}

static void key(char before, const char *name) {
    token(before);
    require(!strcmp(string(), name), "a line of the certificate has other keys than expected.");
    token(':');
}

static whole integer(void) {
    cursor += strspn(cursor, " \t\n\r");
    size_t minus = *cursor == '-', n = strspn(cursor + minus, DIGITS);
    require(n > 0 && n < 19 && (n == 1 || cursor[minus] != '0'), "an integer of the certificate is wrong.");
    return strtoll(cursor, &cursor, 10);
}

static int null(void) {
    cursor += strspn(cursor, " \t\n\r");
    return strncmp(cursor, "null", 4) ? 0 : (cursor += 4, 1);
}

static number *absent(whole count) {
    number *array = count < 0 || (uint64_t)count > SIZE_MAX / 2 ? NULL : calloc((size_t)count + 1, sizeof *array);
    require(array != NULL, "the memory does not suffice.");
    return array;
}

static void read_part(part *a) { /* all but the key "positive" */
    a->positive = string();
    key(',', "loss"), a->loss = string();
    key(',', "C"), read_number(&a->C, string(), UNBOUNDED | POSITIVE);
    key(',', "p"), read_number(&a->p, string(), UNBOUNDED);
    key(',', "power"), a->power = (int)integer();
    key(',', "intercept"), a->intercept = string();
    key(',', "scaling"), read_number(&a->scaling, string(), POSITIVE);
    key(',', "b"), read_number(&a->b, string(), SIGNED);
    key(',', "lower"), read_number(&a->lower, string(), 0);
    key(',', "upper"), read_number(&a->upper, string(), UNBOUNDED);
    a->w = absent(columns), a->v = absent(columns), a->weights = absent(rows), a->dual = absent(rows);
    a->seen = a->some = 0, a->exponent = !strcmp(a->loss, "hard") ? 0 : !strcmp(a->loss, "hinge") ? 1 : 2;
    mpz_init(a->rho), mpz_init_set_ui(a->W, 1), mpz_init_set_ui(a->D, 1), mpz_init(a->least), mpz_init(a->losses);
    mpq_init(a->G), mpq_init(a->w[0].q), a->w[0].is = FINITE, mpq_set(a->w[0].q, a->b.q);
    int none = !strcmp(a->intercept, "none"), free = !strcmp(a->intercept, "free");
    if (free) mpz_setbit(a->rho, BITS);
    else if (!none) to_units(a->rho, a->scaling.q), mpq_div(a->w[0].q, a->b.q, a->scaling.q);
    int known = (none || free || !strcmp(a->intercept, "augmented")) && (a->power == 1 || a->power == 2);
    require(known && (a->exponent < 2 || !strcmp(a->loss, "squared_hinge")), "unknown kind of problem.");
    require(!none || !mpq_sgn(a->b.q), "an intercept of a problem without one.");
    require(a->p.is == INFINITE || mpq_cmp_ui(a->p.q, 1, 1) >= 0, "the exponent p is less than 1.");
    support(!a->exponent || a->C.is == FINITE, "a loss has no finite C.");
}

static void read_certificate(char *rest) {
    whole lines = 1, ended = 0;
    require((cursor = next_line(&rest)) != NULL, "the certificate is empty.");
    key('{', "format"), require(!strcmp(string(), "maxmargin certificate"), "unknown format.");
    key(',', "version"), require(integer() == 1, "unknown version.");
    key(',', "rows"), rows = integer(), key(',', "columns"), columns = integer();
    key(',', "sha256"), digest = string();
    key(',', "label"), label = null() ? NULL : string();
    key(',', "names");
    if (!null())
        for (token('['); !taken(']'); names[name_count++] = string()) {
            if (name_count) token(',');
            names = resized(names, name_count + 1, sizeof *names);
        }
    key(',', "first_index"), first_index = integer(), key(',', "parts");
    whole count = integer();
    for (token('}'); require(!*(cursor += strspn(cursor, SPACES)), "a line has more than an object."), cursor = next_line(&rest);
         lines++, token('}')) {
        require(!ended, "lines follow the end of the certificate.");
        token('{');
        char *name = string();
        token(':');
        if ((ended = !strcmp(name, "end"))) require(integer() == lines, "the certificate is cut off.");
        else if (!strcmp(name, "positive")) {
            parts = resized(parts, ++part_count, sizeof *parts);
            read_part(&parts[part_count - 1]);
        } else {
            int of_w = !strcmp(name, "w"), of_weights = !strcmp(name, "weights"), first = 1;
            require(part_count && (of_w || of_weights || !strcmp(name, "dual")), "a line has no place.");
            part *a = &parts[part_count - 1];
            number *array = of_w ? a->w : of_weights ? a->weights : a->dual;
            for (token('['); !taken(']'); first = 0, token(']')) {
                if (!first) token(',');
                token('[');
                whole place = integer();
                int free = 0 < place && place <= (of_w ? columns : rows) && array[place].is == ABSENT;
                require(free, "a position is wrong, or repeated.");
                token(','), read_number(&array[place], string(), of_w ? SIGNED : of_weights ? 0 : RATIONAL);
                if (!of_weights) mpz_lcm(of_w ? a->W : a->D, of_w ? a->W : a->D, mpq_denref(array[place].q));
            }
        }
    }
    require(ended && count > 0 && (uint64_t)count == part_count, "the certificate is cut off, or parts are missing.");
    for (part *a = parts; a < parts + part_count; a++) {
        mpz_lcm(a->W, a->W, mpq_denref(a->w[0].q));
        for (whole j = 0; j <= columns; j++) {
            if (a->w[j].is == ABSENT) continue;
            mpz_t unit;
            mpz_init(unit), mpz_divexact(unit, a->W, mpq_denref(a->w[j].q));
            mpz_mul(mpq_numref(a->w[j].q), mpq_numref(a->w[j].q), unit), mpz_clear(unit);
        }
    }
}

/* SHA-256: the constants are the first bits of the fractional parts of roots of the first primes */

static uint32_t hash[8], factors[64], schedule[64];
static uint64_t hashed;

static void start_hash(void) {
    mpz_t root;
    mpz_init(root);
    for (unsigned long p = 2, k = 0, d; k < 64; p++) {
        for (d = 2; d < p && p % d; d++) {}
        if (d < p) continue;
        for (int cube = k < 8 ? 0 : 1; cube < 2; cube++) {
            mpz_set_ui(root, p), mpz_mul_2exp(root, root, cube ? 96 : 64), mpz_root(root, root, cube ? 3 : 2);
            *(cube ? &factors[k] : &hash[k]) = (uint32_t)(mpz_get_ui(root) & 0xFFFFFFFF);
        }
        k++;
    }
    mpz_clear(root);
}

#define TURN(x, n) ((x) >> (n) | (x) << (32 - (n)))

static void add_to_hash(const char *text, size_t n) {
    for (uint32_t *w = schedule, s[8], k; n--;) {
        w[hashed / 4 % 16] = w[hashed / 4 % 16] << 8 | (unsigned char)*text++;
        if (++hashed % 64) continue;
        for (k = 16; k < 64; k++)
            w[k] = w[k - 16] + (TURN(w[k - 15], 7) ^ TURN(w[k - 15], 18) ^ w[k - 15] >> 3) + w[k - 7] +
                   (TURN(w[k - 2], 17) ^ TURN(w[k - 2], 19) ^ w[k - 2] >> 10);
        for (memcpy(s, hash, sizeof s), k = 0; k < 64; k++) {
            uint32_t t = s[7] + (TURN(s[4], 6) ^ TURN(s[4], 11) ^ TURN(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
                         factors[k] + w[k];
            uint32_t u = (TURN(s[0], 2) ^ TURN(s[0], 13) ^ TURN(s[0], 22)) +
                         ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            memmove(s + 1, s, 7 * sizeof *s), s[4] += t, s[0] = t + u;
        }
        for (k = 0; k < 8; k++) hash[k] += s[k];
    }
}

static void end_hash(char *text) { /* 65 characters */
    unsigned char size[9] = {0};
    for (int k = 0; k < 8; k++) size[k] = (unsigned char)(8 * hashed >> (56 - 8 * k));
    add_to_hash("\x80", 1);
    while (hashed % 64 != 56) add_to_hash("", 1);
    add_to_hash((char *)size, 8);
    for (int k = 0; k < 8; k++) sprintf(text + 8 * k, "%08" PRIx32, hash[k]);
}

/* Data */

static int by_column(const void *a, const void *b) {
    whole j = ((const entry *)a)->column, k = ((const entry *)b)->column;
    return (j > k) - (j < k);
}

static void add_entry(whole column, char *text) {
    if (entry_count + 2 > entry_room) {
        row = resized(row, entry_room = 2 * entry_room + 16, sizeof *row);
        for (size_t k = entry_count; k < entry_room; k++) mpz_init(row[k].units);
    }
    support(!strchr(text, '_'), "an entry has an underscore.");
    row[entry_count].column = column;
    require(read_real(text, &row[entry_count++].x), "an entry of a row is not understood.");
}

/* Add the present row to the sums of a problem: losses, the least margin, the gains G, and v, that of alpha_i y_i x_i. */
static void add_to_sums(part *a, const char *name, size_t n) {
    number *alpha = &a->dual[rows_read], *weight = &a->weights[rows_read]; /* positions count from 1 */
    int negative = strcmp(name, a->positive) != 0, counts = weight->is == ABSENT || mpq_sgn(weight->q);
    mpz_t sum, term;
    mpq_t s, cost;
    mpz_init(sum), mpz_init(term), mpq_init(s), mpq_init(cost);
    mpq_set_ui(s, 1, 1);
    if (weight->is != ABSENT) mpq_set(s, weight->q);
    a->seen |= !negative;
    mpz_set(row[0].units, a->rho), row[0].column = 0;
    for (size_t k = 0; k < n; k++)
        if (a->w[row[k].column].is != ABSENT) mpz_addmul(sum, mpq_numref(a->w[row[k].column].q), row[k].units);
    if (negative) mpz_neg(sum, sum);
    if (counts && (!a->some++ || mpz_cmp(sum, a->least) < 0)) mpz_set(a->least, sum);
    mpz_mul_2exp(term, a->W, BITS), mpz_sub(sum, term, sum); /* the slack */
    if (mpz_sgn(sum) > 0) mpz_pow_ui(sum, sum, (unsigned long)a->exponent), to_units(term, s), mpz_addmul(a->losses, term, sum);
    if (alpha->is != ABSENT && mpq_sgn(alpha->q)) {
        if (a->exponent) mpq_mul(s, s, a->C.q); /* the cap of hinge losses */
        require(counts && (a->exponent != 1 || mpq_cmp(alpha->q, s) <= 0), "a dual variable is out of its bounds.");
        if (a->exponent == 2) { /* alpha_i^2 / (4 C s_i), rounded up to a multiple of 2^-1400 */
            mpq_mul(cost, alpha->q, alpha->q), mpq_div(cost, cost, s), mpq_mul_2exp(cost, cost, 1398);
            mpz_cdiv_q(mpq_numref(cost), mpq_numref(cost), mpq_denref(cost)), mpz_set_ui(mpq_denref(cost), 1);
            mpq_div_2exp(cost, cost, 1400);
        }
        mpq_sub(cost, alpha->q, cost), mpq_add(a->G, a->G, cost);
        mpz_divexact(term, a->D, mpq_denref(alpha->q)), mpz_mul(term, term, mpq_numref(alpha->q));
        if (negative) mpz_neg(term, term);
        for (size_t k = 0; k < n; k++) {
            number *v = &a->v[row[k].column];
            if (v->is == ABSENT) mpq_init(v->q), v->is = FINITE;
            mpz_addmul(mpq_numref(v->q), term, row[k].units);
        }
    }
    mpz_clear(sum), mpz_clear(term), mpq_clear(s), mpq_clear(cost);
}

static void add_row(char *cell) { /* to the digest, and to the sums of all problems */
    char room[400], text[64];
    size_t n = 1;
    const char *name = label_of(cell, room);
    mpq_t x;
    mpq_init(x);
    qsort(row + 1, entry_count - 1, sizeof *row, by_column);
    add_to_hash(name, strlen(name));
    for (size_t k = 1; k < entry_count; k++) {
        entry e = row[k];
        require(k + 1 == entry_count || row[k + 1].column != e.column, "a row has a column twice.");
        if (e.x == 0) continue;
        require(isfinite(e.x) && 0 < e.column && e.column <= columns, "a row has an entry that is not in the problem.");
        add_to_hash(text, (size_t)sprintf(text, " %lld:", e.column));
        hexadecimal(e.x, text), add_to_hash(text, strlen(text));
        mpq_set_d(x, e.x), to_units(e.units, x);
        row[k] = row[n], row[n++] = e;
    }
    add_to_hash("\n", 1);
    require(rows_read++ < rows, "these are not the data of the certificate.");
    for (size_t k = 0; k < part_count; k++) add_to_sums(&parts[k], name, n);
    entry_count = 1, mpq_clear(x);
}

static void read_svmlight(char *rest) {
    for (char *line, *word; (line = next_line(&rest));) {
        line[strcspn(line, "#")] = 0;
        if (!(word = strtok(line, SPACES))) continue;
        char *name = word;
        while ((word = strtok(NULL, SPACES))) {
            if (!strncmp(word, "qid:", 4)) continue;
            size_t sign = *word == '+' || *word == '-', digits = strspn(word + sign, DIGITS);
            support(!strchr(word, '_'), "an entry has an underscore.");
            require(digits && word[sign + digits] == ':', "an entry of a row is not understood.");
            support(digits < 19, "a row has a column beyond 10^18.");
            add_entry(strtoll(word, NULL, 10) - first_index + 1, word + sign + digits + 1);
        }
        add_row(name);
    }
}

static char *next_cell(char **line, char delimiter) { /* NULL after the last one */
    char *cell = *line, *end = cell ? strchr(cell, delimiter) : NULL;
    *line = end ? *end = 0, end + 1 : NULL;
    return cell;
}

static void read_delimited(char *rest) {
    char delimiter = ',', *line = NULL, *cell;
    size_t most = 0, count = 0, *places = resized(NULL, name_count + 1, sizeof *places), head;
    char **found = NULL;
    support(!strchr(rest, '"'), "delimited text has quotes.");
    require((line = next_line(&rest)) && names, "there is no header.");
    for (const char *d = ",;\t"; *d; d++) {
        size_t times = 0;
        for (const char *s = line; *s; s++) times += *s == *d;
        if (times > most) delimiter = *d, most = times;
    }
    for (; (cell = next_cell(&line, delimiter)); found[count++] = cell) {
        found = resized(found, count + 1, sizeof *found);
        for (size_t k = 0; k < count; k++) require(strcmp(found[k], cell), "two columns have the same name.");
    }
    for (size_t k = 0; k <= name_count; k++) {
        for (head = 0; head < count && strcmp(found[head], k < name_count ? names[k] : label);) head++;
        require((places[k] = head) < count, "a column is missing.");
    }
    while ((line = next_line(&rest))) {
        if (!*line) continue; /* blank lines are no rows */
        for (head = 0; head < count; head++) found[head] = next_cell(&line, delimiter);
        for (size_t k = 0; k <= name_count; k++) require(found[places[k]] != NULL, "a row is too short.");
        for (size_t k = 0; k < name_count; k++) add_entry((whole)k + 1, found[places[k]]);
        add_row(found[places[name_count]]);
    }
}

/* Bounds */

/* Decide |v / unit|_p <= limit, or for power 2 half its square <= limit, for integers v by position. */
static int norm_at_most(const number *v, int from, const mpz_t unit, const number *p, int power, const mpq_t limit) {
    unsigned long exponent = p->is == INFINITE ? 1 : mpz_get_ui(mpq_numref(p->q));
    int some = 0, known = p->is == INFINITE || (!mpz_cmp_ui(mpq_denref(p->q), 1) && mpq_cmp_ui(p->q, 64, 1) <= 0);
    mpz_t total, term;
    mpq_t square;
    mpz_init(total), mpz_init(term), mpq_init(square);
    mpq_abs(square, limit), mpq_mul(square, square, limit);
    if (power == 2) mpq_mul_2exp(square, limit, 1);
    mpz_mul(term, unit, unit), mpz_mul(mpq_numref(square), mpq_numref(square), term); /* of which |v|_p^2 is at most */
    for (whole j = from; j <= columns; j++) {
        if (v[j].is == ABSENT || !mpz_sgn(mpq_numref(v[j].q))) continue;
        some = 1;
        if (!known || mpq_sgn(square) <= 0) break;
        mpz_abs(term, mpq_numref(v[j].q)), mpz_pow_ui(term, term, exponent);
        if (p->is != INFINITE) mpz_add(total, total, term);
        else if (mpz_cmp(term, total) > 0) mpz_set(total, term);
    }
    if (!some || mpq_sgn(square) <= 0) return mpq_sgn(square) >= 0 && !some;
    if (!known) return undecided = 1;
    mpz_mul(total, total, total); /* total^2 <= square^exponent */
    mpz_pow_ui(term, mpq_denref(square), exponent), mpz_mul(total, total, term);
    mpz_pow_ui(term, mpq_numref(square), exponent);
    return mpz_cmp(total, term) <= 0;
}

static void check_bounds(part *a) {
    number q;
    mpz_t v_unit;
    mpq_t x, y, one;
    int below = !mpq_sgn(a->lower.q), above = a->upper.is == INFINITE, from = strcmp(a->intercept, "augmented") != 0;
    mpz_init(v_unit), mpq_init(x), mpq_init(y), mpq_init(one), mpq_init(q.q);
    mpq_set_ui(one, 1, 1), mpq_set_ui(q.q, 1, 1), mpz_mul_2exp(v_unit, a->D, BITS);
    q.is = a->p.is == FINITE && mpq_equal(a->p.q, one) ? INFINITE : FINITE;
    if (q.is == FINITE && a->p.is == FINITE) mpq_sub(x, a->p.q, one), mpq_div(q.q, a->p.q, x); /* p / (p - 1) */
    int balanced = strcmp(a->intercept, "free") || a->v[0].is == ABSENT || !mpz_sgn(mpq_numref(a->v[0].q));
    require(balanced, "the dual variables are not balanced.");
    if (!a->exponent) { /* lower <= min m_i / |w|_q, and |v|_p / sum alpha_i <= upper */
        mpq_set_z(x, a->least), mpq_div_2exp(x, x, BITS);
        mpq_set_z(y, a->W), mpq_div(x, x, y);
        if (!below) mpq_div(x, x, a->lower.q), below = a->some && mpq_sgn(x) > 0 && norm_at_most(a->w, from, a->W, &q, 1, x);
        mpq_mul(y, a->upper.q, a->G);
        if (!above) above = mpq_sgn(a->G) > 0 && norm_at_most(a->v, from, v_unit, &a->p, 1, y);
    } else { /* lower <= G - |v|_p^2 / 2 or G / max(1, |v|_p), and |w|_q^2 / 2 or |w|_q <= upper - losses */
        mpq_sub(x, a->G, a->lower.q);
        if (a->power == 1 && !below) mpq_div(x, a->G, a->lower.q);
        if (!below) below = mpq_cmp(a->G, a->lower.q) >= 0 && norm_at_most(a->v, from, v_unit, &a->p, a->power, x);
        mpz_mul_2exp(v_unit, a->W, BITS), mpz_pow_ui(v_unit, v_unit, (unsigned long)a->exponent);
        mpq_set_z(y, a->losses), mpq_set_z(x, v_unit), mpq_div(y, y, x), mpq_div_2exp(y, y, BITS);
        mpq_mul(y, y, a->C.q), mpq_sub(y, a->upper.q, y);
        if (!above) above = norm_at_most(a->w, from, a->W, &q, a->power, y);
    }
    require(below, "the lower bound is not proved.");
    require(above, "the upper bound is not proved.");
    require(a->seen, "no row is of the class of a part.");
    double upper = a->upper.is == INFINITE ? INFINITY : mpq_get_d(a->upper.q);
    printf("class %s: %.17g <= best <= %.17g\n", a->positive, mpq_get_d(a->lower.q), upper);
}

int main(int count, char **paths) {
    char text[80];
    require(count == 3, "the arguments are the certificate and the file of the data.");
    size_t n = strlen(paths[2]), mark;
    support(n < 3 || strcmp(paths[2] + n - 3, ".gz"), "unzip the data.");
    start_hash();
    read_certificate(content(paths[1]));
    char *data = content(paths[2]);
    row = resized(NULL, entry_room = 16, sizeof *row);
    for (mark = 0; mark < entry_room; mark++) mpz_init(row[mark].units);
    entry_count = 1; /* that of the intercept */
    (label ? read_delimited : read_svmlight)(data);
    end_hash(text);
    require(rows_read == rows && !strcmp(text, digest), "these are not the data of the certificate.");
    for (size_t k = 0; k < part_count; k++) check_bounds(&parts[k]);
    support(!undecided, "the norm has an exponent that is not whole, or above 64.");
    return puts("VALID"), 0;
}
