/* Check a certificate file of maxmargin against the data, in exact arithmetic: check proof.json data.svm

   Independent of check.py, in C99 with GMP: cc -O2 -o check check.c -lgmp -lm. The objects of the certificate hold the
   keys in the order in which maxmargin writes them. docs/certificate_format.md has the format,
   docs/explanation/exact_checks.md the proofs. The exit status is 0 for VALID, 1 for INVALID and 3 for UNSUPPORTED:
   compressed data, or a comparison of a p-norm with p other than infinity and the integers up to 64. */
#include <gmp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 1074 }; /* every float64 number is an integer in units of 2^-1074 */
#define DIGITS "0123456789"
#define SPACES " \t\n\v\f\r"
typedef long long whole;
typedef enum { ABSENT, FINITE, INFINITE } state;
typedef struct { state is; mpq_t q; } number;
typedef struct { whole column; size_t order; double x; mpz_t mantissa; int shift; } entry;
typedef struct { /* of a binary problem; arrays by position, from 0; offset, smallest: in units of 2^-2148 */
    char *positive, *loss, *intercept;
    int hard, squared, power, margins, seen;
    number C, scaling, p, b, lower, upper, *w, *weights, *dual, *v;
    mpz_t D, offset, imbalance, losses, smallest;
} part;

static part *parts;
static entry *row; /* the entries of the present row */
static size_t part_count, name_count, entry_count, entry_room;
static whole rows, columns, first_index, rows_read;
static char **names, *label, *digest;
static int undecided;

static void require(int holds, const char *failure) { if (!holds) fprintf(stderr, "INVALID: %s\n", failure), exit(1); }

static void *resized(void *old, size_t count, size_t size) {
    require(count <= SIZE_MAX / 2 / size && (old = realloc(old, count * size + 1)), "the memory does not suffice.");
    return old;
}

/* Text. Spaces and digits beyond ASCII, which Python reads as such, and underscores in numbers are refused. */

static char *content(const char *path) { /* a file of UTF-8 without its byte order mark */
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000}; /* the first character of 1 ... 4 bytes */
    size_t size = 0, room = 1 << 16, got;
    char *text = resized(NULL, room, 1);
    FILE *file = fopen(path, "rb");
    require(file != NULL, "a file cannot be opened.");
    while ((got = fread(text + size, 1, room - 1 - size, file)) > 0)
        if ((size += got) == room - 1) text = resized(text, room *= 2, 1);
    require(!ferror(file) && !fclose(file), "a file cannot be read.");
    text[size] = 0;
    for (unsigned char *s = (unsigned char *)text, *end = s + size; s < end;) {
        unsigned long c = *s++;
        int n = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
        if (n > 1) c &= 0x7F >> n;
        for (int k = 1; k < n; k++, c = c << 6 | (*s++ & 0x3F)) require((*s & 0xC0) == 0x80, "a file is not UTF-8.");
        require(n && c && c >= least[n] && c <= 0x10FFFF && c >> 11 != 0x1B, "a file is not UTF-8, or holds NUL.");
        int space = (c >= 0x1C && c < 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
                    c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
        require(!space, "a file holds a space other than those of ASCII.");
    }
    return text;
}

static char *next_line(char **rest) { /* without its end, "\n", "\r" or "\r\n"; NULL after the last line */
    char *line = *rest, *end = line + strcspn(line, "\r\n");
    if (!*line) return NULL;
    *rest = end + (end[0] == '\r' && end[1] == '\n' ? 2 : *end != 0);
    *end = 0;
    return line;
}

static char *stripped(char *text) {
    text += strspn(text, SPACES);
    for (size_t n = strlen(text); n && strchr(SPACES, text[n - 1]);) text[--n] = 0;
    return text;
}

static int read_real(char *text, double *x) { /* text without spaces around it */
    char *s = text + (*text == '+' || *text == '-'), *letter;
    static const char *words[] = {"infinity", "inf", "nan"};
    for (int k = 0; k < 3; k++) {
        size_t n = strlen(words[k]), i = 0;
        while (i < n && (s[i] | 0x20) == words[k][i]) i++;
        if (i == n && !s[n]) return *x = strtod(text, NULL), 1;
    }
    int known = strspn(s, DIGITS ".eE+-") == strlen(s) && strpbrk(s, DIGITS); /* then strtod and Python agree */
    *x = known ? strtod(text, &letter) : 0;
    return known && !*letter;
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
    mpz_t integer;
    text = stripped(text);
    if (!read_real(text, &x)) return text;
    if (!isfinite(x) || x != floor(x)) return hexadecimal(x, room);
    mpz_init_set_d(integer, x);
    mpz_get_str(room, 10, integer);
    mpz_clear(integer);
    return room;
}

static void read_number(char *text, number *a) { /* a hexadecimal float, an integer, a quotient of integers, or inf */
    char *s = text + (*text == '+' || *text == '-'), *end;
    size_t n = strspn(s, DIGITS);
    mpq_init(a->q);
    a->is = strcmp(text, "inf") ? FINITE : INFINITE;
    if (s[0] == '0' && s[1] == 'x') {
        double x = strtod(text, &end);
        require(s[2] && end > s + 2 && !*end && isfinite(x), "a number of the certificate is not understood.");
        mpq_set_d(a->q, x);
    } else if (a->is == FINITE) {
        size_t below = s[n] == '/' ? strspn(s + n + 1, DIGITS) : 0;
        require(n && (!s[n] || (below && !s[n + 1 + below])), "a number of the certificate is not understood.");
        require(!mpq_set_str(a->q, text + (*text == '+'), 10) && mpz_sgn(mpq_denref(a->q)), "a quotient by 0.");
        mpq_canonicalize(a->q);
    }
}

static void to_units(mpz_t units, number *a) { /* units may be the numerator of a */
    size_t shift = mpz_sizeinbase(mpq_denref(a->q), 2) - 1;
    int holds = a->is == FINITE && mpz_popcount(mpq_denref(a->q)) == 1 && shift <= BITS;
    require(holds, "a number is no float64 number.");
    mpz_mul_2exp(units, mpq_numref(a->q), BITS - shift);
}

/* JSON: lines of objects with texts, integers, null and arrays; strings are decoded in place */

static char *cursor;

static int taken(char c) { return *(cursor += strspn(cursor, " \t\n\r")) == c ? cursor++, 1 : 0; }

static int at_end(void) { return !*(cursor += strspn(cursor, " \t\n\r")); }

static unsigned long four_digits(void) {
    char digits[5] = {0};
    require(strspn(strncpy(digits, cursor, 4), DIGITS "abcdefABCDEF") == 4, "a text of the certificate is wrong.");
    cursor += 4;
    return strtoul(digits, NULL, 16);
}

static char *string(void) {
    static const char *escapes = "\"\\/bfnrt", *meanings = "\"\\/\b\f\n\r\t";
    char *start = cursor, *to = start, *escape;
    for (unsigned long c; (c = (unsigned char)*cursor++) != '"';) {
        require(c >= 0x20, "a text of the certificate is wrong.");
        if (c != '\\') { *to++ = (char)c; continue; }
        if (*cursor && (escape = strchr(escapes, *cursor))) { *to++ = meanings[escape - escapes], cursor++; continue; }
        require(*cursor++ == 'u', "a text of the certificate is wrong.");
        if ((c = four_digits()) >> 10 == 0x36) { /* the first of two surrogates */
            require(*cursor == '\\' && cursor[1] == 'u', "a text of the certificate is wrong."), cursor += 2;
            unsigned long low = four_digits();
            require(low >> 10 == 0x37, "a text of the certificate is wrong.");
            c = 0x10000 + ((c & 0x3FF) << 10 | (low & 0x3FF));
        } else require(c && c >> 10 != 0x37, "a text of the certificate is wrong.");
        int n = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* further bytes */
        *to++ = (char)(n ? (0xFF00 >> (n + 1) & 0xFF) | c >> 6 * n : c);
        while (n--) *to++ = (char)(0x80 | (c >> 6 * n & 0x3F));
    }
    *to = 0;
    return start;
}


static void token(char c) { require(taken(c), "a line of the certificate is not understood."); }

static char *text_after(char before, const char *key) { /* the keys have the order in which maxmargin writes them */
    token(before), token('"');
    require(!strcmp(string(), key), "a line of the certificate has other keys than expected.");
    token(':');
    return taken('"') ? string() : NULL; /* NULL: the value is no text, and is read next */
}

static char *required_after(char before, const char *key) {
    char *text = text_after(before, key);
    require(text != NULL, "a text of the certificate is missing.");
    return text;
}

static whole integer_after(const char *key) { /* key: NULL for an integer within an array */
    require(!key || !text_after(',', key), "an integer of the certificate is missing.");
    cursor += strspn(cursor, " \t\n\r");
    size_t minus = *cursor == '-', n = strspn(cursor + minus, DIGITS);
    require(n > 0 && n < 19 && (n == 1 || cursor[minus] != '0'), "an integer of the certificate is wrong.");
    return strtoll(cursor, &cursor, 10);
}

static char *null(void) {
    require(!strncmp(cursor, "null", 4), "a line of the certificate is not understood.");
    return cursor += 4, NULL;
}

static number *absent(whole count) {
    number *array = count < 0 || (uint64_t)count > SIZE_MAX / 2 ? NULL : calloc((size_t)count + 1, sizeof *array);
    require(array != NULL, "the memory does not suffice.");
    return array;
}

static void read_part(part *a) { /* all but the key "positive" */
    a->positive = string();
    a->loss = required_after(',', "loss");
    read_number(required_after(',', "C"), &a->C), read_number(required_after(',', "p"), &a->p);
    a->power = (int)integer_after("power");
    a->intercept = required_after(',', "intercept");
    read_number(required_after(',', "scaling"), &a->scaling), read_number(required_after(',', "b"), &a->b);
    read_number(required_after(',', "lower"), &a->lower), read_number(required_after(',', "upper"), &a->upper);
    a->hard = !strcmp(a->loss, "hard"), a->squared = !strcmp(a->loss, "squared_hinge"), a->margins = 0;
    a->w = absent(columns), a->v = absent(columns + 1), a->weights = absent(rows), a->dual = absent(rows);
    mpz_init_set_ui(a->D, 1), mpz_init(a->offset), mpz_init(a->imbalance), mpz_init(a->losses), mpz_init(a->smallest);
    int bare = !strcmp(a->intercept, "none"), known = a->hard || a->squared || !strcmp(a->loss, "hinge");
    known = known && (bare || !strcmp(a->intercept, "free") || !strcmp(a->intercept, "augmented"));
    require(known && (a->power == 1 || a->power == 2), "unknown kind of problem.");
    known = (a->C.is == INFINITE || mpq_sgn(a->C.q) > 0) && (a->scaling.is == INFINITE || mpq_sgn(a->scaling.q) > 0);
    known = known && (a->p.is == INFINITE || mpq_cmp_ui(a->p.q, 1, 1) >= 0) && a->lower.is == FINITE;
    require(known && mpq_sgn(a->lower.q) >= 0 && mpq_sgn(a->upper.q) >= 0, "a number is negative or not finite.");
    for (number *x = &a->lower; x; x = x == &a->lower ? &a->upper : NULL) {
        size_t most = mpz_sizeinbase(mpq_denref(x->q), 2) + 1023;
        require(mpz_sizeinbase(mpq_numref(x->q), 2) <= most, "a bound is beyond the float64 numbers.");
    }
    to_units(a->offset, &a->b);
    mpz_mul_2exp(a->offset, a->offset, BITS);
    require(!bare || !mpz_sgn(a->offset), "the problem has no intercept.");
}

static void read_certificate(char *rest) {
    whole lines = 1, count;
    int ended = 0;
    require((cursor = next_line(&rest)) != NULL, "the certificate is empty.");
    int known = !strcmp(required_after('{', "format"), "maxmargin certificate") && integer_after("version") == 1;
    require(known, "unknown format or version.");
    rows = integer_after("rows"), columns = integer_after("columns");
    digest = required_after(',', "sha256");
    if (!(label = text_after(',', "label"))) null();
    require(!text_after(',', "names"), "the names are not an array.");
    if (!taken('[')) null();
    else for (; !taken(']'); names[name_count++] = string()) {
        if (name_count) token(',');
        token('"'), names = resized(names, name_count + 1, sizeof *names);
    }
    first_index = integer_after("first_index"), count = integer_after("parts");
    for (token('}'); require(at_end(), "a line has more than an object."), cursor = next_line(&rest); lines++) {
        require(!ended, "lines follow the end of the certificate.");
        token('{'), token('"');
        char *key = string();
        token(':');
        if ((ended = !strcmp(key, "end"))) require(integer_after(NULL) == lines, "the certificate is cut off.");
        else if (!strcmp(key, "positive")) {
            parts = resized(parts, ++part_count, sizeof *parts);
            token('"'), read_part(&parts[part_count - 1]);
        } else {
            int of_w = !strcmp(key, "w"), of_weights = !strcmp(key, "weights"), first = 1;
            require(part_count && (of_w || of_weights || !strcmp(key, "dual")), "a line has no place.");
            part *a = &parts[part_count - 1];
            number *array = of_w ? a->w : of_weights ? a->weights : a->dual, *x;
            for (token('['); !taken(']'); first = 0, token(']')) {
                if (!first) token(',');
                token('[');
                whole place = integer_after(NULL);
                require(0 < place && place <= (of_w ? columns : rows), "a position is wrong.");
                require((x = &array[place - 1])->is == ABSENT, "a position is repeated.");
                token(','), token('"'), read_number(string(), x);
                if (of_w) to_units(mpq_numref(x->q), x);
                if (of_weights) require(mpq_sgn(x->q) >= 0, "a weight is negative.");
                if (array == a->dual) require(x->is == FINITE, "a dual variable is not finite.");
                if (array == a->dual) mpz_lcm(a->D, a->D, mpq_denref(x->q));
            }
        }
        token('}');
    }
    require(ended && count > 0 && (uint64_t)count == part_count, "the certificate is cut off, or parts are missing.");
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
    const entry *x = a, *y = b;
    return x->column != y->column ? (x->column > y->column) - (x->column < y->column)
                                  : (x->order > y->order) - (x->order < y->order);
}

static void add_entry(whole column, char *text) {
    if (entry_count == entry_room) {
        row = resized(row, entry_room = 2 * entry_room + 16, sizeof *row);
        for (size_t k = entry_count; k < entry_room; k++) mpz_init(row[k].mantissa);
    }
    entry *e = &row[entry_count];
    e->column = column, e->order = entry_count++;
    require(read_real(text, &e->x), "an entry of a row is not understood.");
}

/* Add the present row to the digest, the margins and the sums. */
static void add_row(char *cell) {
    char room[400], text[64];
    size_t n = 0;
    mpz_t sum, term;
    const char *name = label_of(cell, room);
    qsort(row, entry_count, sizeof *row, by_column);
    add_to_hash(name, strlen(name));
    for (size_t k = 0; k < entry_count; k++) {
        entry e = row[k];
        require(k + 1 == entry_count || row[k + 1].column != e.column, "a row has a column twice.");
        if (e.x == 0) continue;
        require(isfinite(e.x) && 0 <= e.column && e.column < columns, "a row has an entry that is not in the problem.");
        add_to_hash(text, (size_t)sprintf(text, " %lld:", e.column + 1));
        hexadecimal(e.x, text), add_to_hash(text, strlen(text));
        double mantissa = frexp(e.x, &e.shift); /* mantissa 2^shift is the entry in units */
        e.shift += BITS - 53;
        mpz_set_d(e.mantissa, ldexp(mantissa, e.shift < 0 ? 53 + e.shift : 53));
        e.shift = e.shift < 0 ? 0 : e.shift;
        row[k] = row[n], row[n++] = e;
    }
    add_to_hash("\n", 1);
    require(rows_read < rows, "these are not the data of the certificate.");
    mpz_init(sum), mpz_init(term);
    for (part *a = parts; a < parts + part_count; a++) {
        number *alpha = &a->dual[rows_read], *weight = &a->weights[rows_read];
        int negative = strcmp(name, a->positive) != 0, counts = weight->is != FINITE || mpq_sgn(weight->q);
        a->seen |= !negative;
        mpz_set(sum, a->offset);
        for (size_t k = 0; k < n; k++) {
            number *w = &a->w[row[k].column];
            if (w->is == ABSENT) continue;
            mpz_mul(term, mpq_numref(w->q), row[k].mantissa), mpz_mul_2exp(term, term, (mp_bitcnt_t)row[k].shift);
            mpz_add(sum, sum, term);
        }
        if (negative) mpz_neg(sum, sum);
        if (counts && (!a->margins++ || mpz_cmp(sum, a->smallest) < 0)) mpz_set(a->smallest, sum);
        mpz_set_ui(term, 1), mpz_mul_2exp(term, term, 2 * BITS), mpz_sub(sum, term, sum);
        if (!a->hard && mpz_sgn(sum) > 0) { /* the slack */
            if (a->squared) mpz_mul(sum, sum, sum);
            if (weight->is == ABSENT) mpz_mul_2exp(term, sum, BITS);
            else to_units(term, weight), mpz_mul(term, term, sum);
            mpz_add(a->losses, a->losses, term);
        }
        if (alpha->is == ABSENT) continue;
        mpz_divexact(term, a->D, mpq_denref(alpha->q)), mpz_mul(sum, term, mpq_numref(alpha->q));
        if (negative) mpz_neg(sum, sum);
        mpz_add(a->imbalance, a->imbalance, sum); /* in units of 1 / D */
        for (size_t k = 0; k < n && mpz_sgn(sum); k++) {
            number *v = &a->v[row[k].column];
            if (v->is == ABSENT) mpq_init(v->q), v->is = FINITE;
            mpz_mul(term, sum, row[k].mantissa), mpz_mul_2exp(term, term, (mp_bitcnt_t)row[k].shift);
            mpz_add(mpq_numref(v->q), mpq_numref(v->q), term);
        }
    }
    mpz_clear(sum), mpz_clear(term);
    entry_count = 0, rows_read++;
}

static void read_svmlight(char *rest) {
    for (char *line, *word; (line = next_line(&rest));) {
        line[strcspn(line, "#")] = 0;
        if (!(word = strtok(line, SPACES))) continue;
        char *name = word;
        while ((word = strtok(NULL, SPACES))) {
            if (!strncmp(word, "qid:", 4)) continue;
            size_t sign = *word == '+' || *word == '-', digits = strspn(word + sign, DIGITS);
            char *colon = word + sign + digits;
            require(digits && *colon == ':', "an entry of a row is not understood.");
            whole j = strtoll(word, NULL, 10), far = (whole)1 << 62; /* positions as far as that are refused */
            add_entry((j > far ? far : j < -far ? -far : j) - first_index, colon + 1);
        }
        add_row(name);
    }
}

static char **cells;
static size_t cell_count;

static int read_cells(char **rest, char delimiter) { /* of the next record, as the module csv of Python; 0: no more */
    char *s = *rest + strspn(*rest, "\r\n"), *to = s, *start = s; /* blank lines are no records */
    if (!*s) return 0;
    for (cell_count = 0;;) {
        int quoted = *s == '"', end;
        for (s += quoted; *s && (quoted || !strchr("\r\n", *s)) && (quoted || *s != delimiter); s++)
            if (!quoted || *s != '"') *to++ = *s;
            else if (s[1] == '"') *to++ = *++s;
            else quoted = 0;
        cells = resized(cells, cell_count + 1, sizeof *cells);
        cells[cell_count++] = start;
        end = *s != delimiter;
        if (*s) s += 1 + (s[0] == '\r' && s[1] == '\n');
        *to++ = 0, start = to;
        if (end) return *rest = s, 1;
    }
}

static size_t place_of(const char *name) {
    for (size_t k = 0; k < cell_count; k++)
        if (!strcmp(cells[k], name)) return k;
    return require(0, "a column is missing."), 0;
}

static void read_delimited(char *rest) {
    size_t length = strcspn(rest, "\r\n"), most = 0, *places = resized(NULL, name_count + 1, sizeof *places);
    char delimiter = ',', *line;
    for (const char *d = ",;\t"; *d; d++) {
        size_t count = 0;
        for (size_t k = 0; k < length; k++) count += rest[k] == *d;
        if (count > most) delimiter = *d, most = count;
    }
    require((line = next_line(&rest)) != NULL && names && read_cells(&line, delimiter), "there is no header.");
    for (size_t k = 0; k <= name_count; k++) places[k] = place_of(k < name_count ? names[k] : label);
    while (read_cells(&rest, delimiter)) {
        for (size_t k = 0; k <= name_count; k++) require(places[k] < cell_count, "a row is too short.");
        for (size_t k = 0; k < name_count; k++) add_entry((whole)k, stripped(cells[places[k]]));
        add_row(cells[places[name_count]]);
    }
}

/* Bounds */

static int norm_at_most(const number *v, const number *p, mpq_t square) { /* |v|_p^2 <= square for integers v */
    unsigned long exponent = p->is == INFINITE ? 1 : mpz_get_ui(mpq_numref(p->q));
    int some = 0, known = p->is == INFINITE || (mpz_cmp_ui(mpq_denref(p->q), 1) == 0 && mpq_cmp_ui(p->q, 64, 1) <= 0);
    mpz_t total, term;
    mpz_init(total), mpz_init(term);
    for (whole j = 0; j <= columns; j++) {
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

static void check_dual_variables(part *a, mpq_t gains) { /* and set gains, the sum or that of squared hinge losses */
    mpq_t x, limit;
    mpz_t terms;
    mpq_init(x), mpq_init(limit), mpz_init(terms);
    require(strcmp(a->intercept, "free") || !mpz_sgn(a->imbalance), "the dual variables are not balanced.");
    for (whole i = 0; i < rows; i++) {
        number *alpha = &a->dual[i], *weight = &a->weights[i];
        if (alpha->is == ABSENT) continue;
        int unbounded = a->hard || a->C.is == INFINITE || weight->is == INFINITE;
        require(mpq_sgn(alpha->q) >= 0, "a dual variable is negative.");
        require(weight->is != FINITE || mpq_sgn(weight->q), "a dual variable of a row without weight.");
        require(!a->squared || !unbounded, "a squared hinge loss without bound.");
        mpz_divexact(mpq_numref(x), a->D, mpq_denref(alpha->q)), mpz_set_ui(mpq_denref(x), 1);
        mpz_addmul(mpq_numref(gains), mpq_numref(x), mpq_numref(alpha->q));
        if (unbounded) continue;
        if (weight->is == FINITE) mpq_mul(limit, a->C.q, weight->q);
        else mpq_set(limit, a->C.q);
        require(a->squared || mpq_cmp(alpha->q, limit) <= 0, "a dual variable is out of its bounds.");
        if (!a->squared) continue;
        /* alpha_i^2 / (4 C s_i), rounded up to a multiple of 2^-1400 */
        mpz_mul(mpq_numref(x), mpq_numref(alpha->q), mpq_numref(alpha->q));
        mpz_mul(mpq_numref(x), mpq_numref(x), mpq_denref(limit)), mpz_mul_2exp(mpq_numref(x), mpq_numref(x), 1398);
        mpz_mul(mpq_denref(x), mpq_denref(alpha->q), mpq_denref(alpha->q));
        mpz_mul(mpq_denref(x), mpq_denref(x), mpq_numref(limit));
        mpz_cdiv_q(mpq_numref(x), mpq_numref(x), mpq_denref(x)), mpz_add(terms, terms, mpq_numref(x));
    }
    mpz_set(mpq_denref(gains), a->D), mpq_canonicalize(gains);
    mpz_set(mpq_numref(x), terms), mpz_set_ui(mpq_denref(x), 1), mpq_div_2exp(x, x, 1400);
    mpq_sub(gains, gains, x);
}

static void check_bounds(part *a) {
    mpq_t gains, w_unit, v_unit, x, y;
    number q, *extra_w = &a->w[columns], *extra_v = &a->v[columns];
    int below = !mpq_sgn(a->lower.q), above = a->upper.is == INFINITE;
    mpq_init(gains), mpq_init(w_unit), mpq_init(v_unit), mpq_init(x), mpq_init(y), mpq_init(q.q);
    check_dual_variables(a, gains);
    mpq_set_ui(q.q, 1, 1), mpq_set_ui(x, 1, 1);
    q.is = a->p.is == FINITE && !mpq_cmp(a->p.q, x) ? INFINITE : FINITE;
    if (q.is == FINITE && a->p.is == FINITE) mpq_sub(x, a->p.q, x), mpq_div(q.q, a->p.q, x); /* p / (p - 1) */
    mpq_set_ui(w_unit, 1, 1), mpq_mul_2exp(w_unit, w_unit, BITS);
    mpq_set_z(v_unit, a->D), mpq_mul_2exp(v_unit, v_unit, BITS);
    if (!strcmp(a->intercept, "augmented")) { /* the coordinate b / scaling of w, and scaling sum alpha_i y_i of v */
        to_units(mpq_numref(x), &a->scaling), mpz_set_ui(mpq_denref(x), 1);
        for (whole j = 0; j < columns; j++)
            if (a->w[j].is != ABSENT) mpz_mul(mpq_numref(a->w[j].q), mpq_numref(a->w[j].q), mpq_numref(x));
        extra_w->is = extra_v->is = FINITE, mpq_init(extra_w->q), mpq_init(extra_v->q);
        mpz_set(mpq_numref(extra_w->q), a->offset), mpz_mul(mpq_numref(extra_v->q), a->imbalance, mpq_numref(x));
        mpq_mul(w_unit, w_unit, x);
    }
    require(!a->hard || a->margins, "all weights are 0.");
    if (a->hard) { /* lower <= min m_i / |w|_q, and |v|_p / sum alpha_i <= upper */
        if (!below && mpz_sgn(a->smallest) > 0) {
            mpq_set_z(x, a->smallest), mpq_div_2exp(x, x, 2 * BITS);
            mpq_div(x, x, a->lower.q), mpq_mul(x, x, w_unit), mpq_mul(x, x, x), below = norm_at_most(a->w, &q, x);
        }
        mpq_mul(y, a->upper.q, gains), mpq_mul(y, y, v_unit), mpq_mul(y, y, y);
        if (!above) above = mpq_sgn(gains) > 0 && norm_at_most(a->v, &a->p, y);
    } else { /* lower <= gains - 1/2 |v|_p^2, and 1/2 |w|_q^2 + losses <= upper */
        mpq_sub(x, gains, a->lower.q), mpq_mul_2exp(x, x, 1);
        if (a->power == 1 && !below) mpq_div(x, gains, a->lower.q), mpq_mul(x, x, x);
        mpq_mul(x, x, v_unit), mpq_mul(x, x, v_unit);
        if (!below) below = mpq_cmp(gains, a->lower.q) >= 0 && norm_at_most(a->v, &a->p, x);
        mpq_set_z(y, a->losses), mpq_div_2exp(y, y, (a->squared ? 5 : 3) * BITS), mpq_mul(y, y, a->C.q);
        mpq_sub(y, a->upper.q, y); /* gains / max(1, |v|_p), and |w|_q + losses with power 1 */
        if (a->power == 1) mpq_abs(x, y), mpq_mul(y, y, x);
        else mpq_mul_2exp(y, y, 1);
        mpq_mul(y, y, w_unit), mpq_mul(y, y, w_unit);
        if (!above) above = a->C.is == FINITE && norm_at_most(a->w, &q, y);
    }
    require(below, "the lower bound is not proved.");
    require(above, "the upper bound is not proved.");
    require(a->seen, "no row is of the class of a part.");
    mpq_set_d(x, mpq_get_d(a->lower.q)), mpq_set_d(y, a->upper.is == FINITE ? mpq_get_d(a->upper.q) : 0);
    require(mpq_equal(x, a->lower.q) && (a->upper.is != FINITE || mpq_equal(y, a->upper.q)), "a bound is no float64 number.");
    double upper = a->upper.is == INFINITE ? INFINITY : mpq_get_d(a->upper.q);
    printf("class %s: %.17g <= best <= %.17g\n", a->positive, mpq_get_d(a->lower.q), upper);
}

int main(int count, char **paths) {
    char text[80];
    require(count == 3, "the arguments are the certificate and the file of the data.");
    size_t n = strlen(paths[2]);
    if (n >= 3 && !strcmp(paths[2] + n - 3, ".gz")) return fprintf(stderr, "UNSUPPORTED: unzip the data.\n"), 3;
    start_hash();
    read_certificate(content(paths[1]));
    char *data = content(paths[2]);
    (label ? read_delimited : read_svmlight)(data + (strncmp(data, "\xEF\xBB\xBF", 3) ? 0 : 3));
    end_hash(text);
    require(rows_read == rows && !strcmp(text, digest), "these are not the data of the certificate.");
    for (size_t k = 0; k < part_count; k++) check_bounds(&parts[k]);
    if (undecided) return fprintf(stderr, "UNSUPPORTED: the norm has an exponent that is not whole, or above 64.\n"), 3;
    return puts("VALID"), 0;
}
