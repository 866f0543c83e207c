/-
Weak duality of linear maximum-margin problems, and the inequalities that a checker of certificate files decides.

docs/explanation/exact_checks.md has the same claims in the same order, with proofs for every real p; the headings here
are those of the page, and (1) is its inequality (1). Core of Lean 4 alone, no library: `lean WeakDuality.lean` prints
nothing where everything is proved.

Numbers are elements of any linearly ordered field K (the rationals, the reals). Norms may be irrational, therefore

* at p = 2 the statements compare squares: `dot d w w` is |w|_2^2;
* for other p they take two numbers `nw` and `nv` with w.v <= nw nv, which is the inequality of Hölder for nw = |w|_q and
  nv = |v|_p. It is proved here for p = 1, p = 2 and p = inf.

An augmented intercept is one more column. A problem without intercept has b = 0.
-/

namespace MaxMargin

open Lean.Grind

universe u

/-- Rows x_i with labels y_i and weights s_i, and the weight C of the losses. -/
structure Problem (K : Type u) where
  rows : Nat
  columns : Nat
  x : Nat → Nat → K
  y : Nat → K
  s : Nat → K
  C : K

section OrderedField

variable {K : Type u} [Field K] [LE K] [LT K] [Std.LawfulOrderLT K] [Std.IsLinearOrder K] [OrderedRing K]

/-! ## Definitions -/

/-- f 0 + ... + f (n - 1). -/
def sum : Nat → (Nat → K) → K
  | 0, _ => 0
  | n + 1, f => sum n f + f n

/-- Scalar product of the first d coordinates. -/
def dot (d : Nat) (a b : Nat → K) : K := sum d fun j => a j * b j

/-- max(0, u). -/
def pos [DecidableLE K] (u : K) : K := if 0 ≤ u then u else 0

/-- |u|. -/
def abs [DecidableLE K] (u : K) : K := if 0 ≤ u then u else -u

/-- m_i = y_i (w.x_i + b). -/
def Problem.margin (P : Problem K) (w : Nat → K) (b : K) (i : Nat) : K := P.y i * (dot P.columns w (P.x i) + b)

/-- v = sum alpha_i y_i x_i. -/
def Problem.combination (P : Problem K) (α : Nat → K) (j : Nat) : K := sum P.rows fun i => α i * (P.y i * P.x i j)

/-- sum alpha_i y_i. -/
def Problem.imbalance (P : Problem K) (α : Nat → K) : K := sum P.rows fun i => α i * P.y i

/-- C sum s_i max(0, 1 - m_i). -/
def Problem.hinge [DecidableLE K] (P : Problem K) (w : Nat → K) (b : K) : K :=
  P.C * sum P.rows fun i => P.s i * pos (1 - P.margin w b i)

/-- C sum s_i max(0, 1 - m_i)^2. -/
def Problem.squaredHinge [DecidableLE K] (P : Problem K) (w : Nat → K) (b : K) : K :=
  P.C * sum P.rows fun i => P.s i * (pos (1 - P.margin w b i) * pos (1 - P.margin w b i))

/-! ## Ordered fields -/

theorem mul_nonneg {a b : K} (ha : 0 ≤ a) (hb : 0 ≤ b) : 0 ≤ a * b := OrderedRing.mul_nonneg ha hb

theorem square_nonneg (a : K) : 0 ≤ a * a := by
  rcases Std.le_total (a := 0) (b := a) with h | h
  · exact mul_nonneg h h
  · have : 0 ≤ (-a) * (-a) := mul_nonneg (by grind) (by grind)
    grind

theorem le_of_mul_le {a b c : K} (hc : 0 < c) (h : a * c ≤ b * c) : a ≤ b := by
  rcases Std.le_total (a := a) (b := b) with h' | h'
  · exact h'
  · have : ¬ (0 < a - b) := fun hab => by
      have := OrderedRing.mul_pos hab hc
      grind
    grind

theorem le_of_square_le {a b : K} (hb : 0 ≤ b) (h : a * a ≤ b * b) : a ≤ b := by
  rcases Std.le_total (a := a) (b := b) with h' | h'
  · exact h'
  · have : ¬ (0 < a - b) := fun hab => by
      have := OrderedRing.mul_pos hab hab
      have := mul_nonneg (a := a - b) (b := b) (by grind) hb
      grind
    grind

theorem square_le {a b : K} (ha : 0 ≤ a) (h : a ≤ b) : a * a ≤ b * b := by
  have := mul_nonneg (a := b - a) (b := b + a) (by grind) (by grind)
  grind

theorem mul_le_mul {a b c d : K} (hab : a ≤ b) (hcd : c ≤ d) (hb : 0 ≤ b) (hc : 0 ≤ c) : a * c ≤ b * d := by
  have := mul_nonneg (a := b - a) (b := c) (by grind) hc
  have := mul_nonneg (a := b) (b := d - c) hb (by grind)
  grind

theorem pos_nonneg [DecidableLE K] (u : K) : 0 ≤ pos u := by unfold pos; split <;> grind

theorem le_pos [DecidableLE K] (u : K) : u ≤ pos u := by unfold pos; split <;> grind

/-! ## Finite sums -/

theorem sum_le {n : Nat} {f g : Nat → K} (h : ∀ i, i < n → f i ≤ g i) : sum n f ≤ sum n g := by
  induction n with
  | zero => simp only [sum]; grind
  | succ n ih =>
    have h1 := ih fun i hi => h i (Nat.lt_succ_of_lt hi)
    have h2 := h n (Nat.lt_succ_self n)
    simp only [sum]; grind

theorem sum_linear (n : Nat) (f g : Nat → K) (c : K) :
    sum n (fun i => f i + c * g i) = sum n f + c * sum n g := by
  induction n with
  | zero => simp only [sum]; grind
  | succ n ih => simp only [sum]; grind

theorem sum_eq_zero {n : Nat} {f : Nat → K} (h : ∀ i, i < n → f i = 0) : sum n f = 0 := by
  induction n with
  | zero => simp only [sum]
  | succ n ih =>
    have h1 := ih fun i hi => h i (Nat.lt_succ_of_lt hi)
    have h2 := h n (Nat.lt_succ_self n)
    simp only [sum]; grind

theorem sum_nonneg {n : Nat} {f : Nat → K} (h : ∀ i, i < n → 0 ≤ f i) : 0 ≤ sum n f := by
  have h1 : sum n (fun _ => (0 : K)) = 0 := sum_eq_zero fun _ _ => rfl
  have h2 : sum n (fun _ => (0 : K)) ≤ sum n f := sum_le h
  grind

theorem dot_linear (d : Nat) (w v z : Nat → K) (c : K) :
    dot d w (fun j => v j + c * z j) = dot d w v + c * dot d w z := by
  have h := sum_linear d (fun j => w j * v j) (fun j => w j * z j) c
  have e : (fun j => w j * (v j + c * z j)) = fun j => w j * v j + c * (w j * z j) := funext fun j => by grind
  simp only [dot, e, h]

omit [LE K] [LT K] [Std.LawfulOrderLT K] [Std.IsLinearOrder K] [OrderedRing K] in
theorem dot_comm (d : Nat) (a b : Nat → K) : dot d a b = dot d b a := by
  have e : (fun j => a j * b j) = fun j => b j * a j := funext fun j => by grind
  simp only [dot, e]

theorem dot_self_nonneg (d : Nat) (a : Nat → K) : 0 ≤ dot d a a := sum_nonneg fun j _ => square_nonneg (a j)

/-! ## Hölder -/

/-- w.v <= |w|_2^2 / 2 + |v|_2^2 / 2. -/
theorem dot_le_halves (d : Nat) (w v : Nat → K) : dot d w v ≤ dot d w w / 2 + dot d v v / 2 := by
  induction d with
  | zero => simp only [dot, sum]; grind
  | succ d ih =>
    have := square_nonneg (w d - v d)
    simp only [dot, sum] at *; grind

/-- |s a - t b|_2^2. -/
theorem dot_difference (d : Nat) (a b : Nat → K) (s t : K) :
    sum d (fun j => (s * a j - t * b j) * (s * a j - t * b j))
      = s * s * dot d a a - 2 * (s * t) * dot d a b + t * t * dot d b b := by
  induction d with
  | zero => simp only [dot, sum]; grind
  | succ d ih => simp only [dot, sum] at *; grind

/-- Hölder for p = 2 (Cauchy and Schwarz), without square roots: (w.v)^2 <= |w|_2^2 |v|_2^2. -/
theorem holder_two (d : Nat) (w v : Nat → K) : dot d w v * dot d w v ≤ dot d w w * dot d v v := by
  have nonneg (s t : K) : 0 ≤ s * s * dot d w w - 2 * (s * t) * dot d w v + t * t * dot d v v := by
    rw [← dot_difference]; exact sum_nonneg fun j _ => square_nonneg _
  have hw := dot_self_nonneg d w
  have hv := dot_self_nonneg d v
  have positive {A B D : K} (hA : 0 < A) (h : 0 ≤ A * A * B - 2 * (A * D) * D + D * D * A) : D * D ≤ A * B :=
    le_of_mul_le hA (by grind)
  by_cases h1 : 0 < dot d w w
  · have := nonneg (dot d w v) (dot d w w)
    exact positive h1 (by grind)
  · by_cases h2 : 0 < dot d v v
    · have := nonneg (dot d v v) (dot d w v)
      have := positive h2 (D := dot d w v) (B := dot d w w) (by grind)
      grind
    · have := nonneg 1 1
      have := nonneg 1 (-1)
      have : dot d w v = 0 := by grind
      have : dot d w w = 0 := by grind
      grind

/-- Hölder for p = 1: w.v <= |w|_inf |v|_1, with any M >= |w_j|. By `dot_comm` also p = inf. -/
theorem holder_one [DecidableLE K] {d : Nat} {w v : Nat → K} {M : K} (h : ∀ j, j < d → abs (w j) ≤ M) :
    dot d w v ≤ M * sum d fun j => abs (v j) := by
  have h1 : dot d w v ≤ sum d (fun j => 0 + M * abs (v j)) := sum_le fun j hj => by
    have hM := h j hj
    have h2 : w j ≤ M ∧ -(w j) ≤ M := by unfold abs at hM; split at hM <;> grind
    unfold abs; split
    · have := mul_nonneg (a := M - w j) (b := v j) (by grind) (by grind)
      grind
    · have := mul_nonneg (a := M + w j) (b := -(v j)) (by grind) (by grind)
      grind
  have h3 := sum_linear d (fun _ => 0) (fun j => abs (v j)) M
  have h4 : sum d (fun _ => (0 : K)) = 0 := sum_eq_zero fun _ _ => rfl
  grind

/-- Hölder for p = inf: w.v <= |w|_1 |v|_inf, with any M >= |v_j|. -/
theorem holder_inf [DecidableLE K] {d : Nat} {w v : Nat → K} {M : K} (h : ∀ j, j < d → abs (v j) ≤ M) :
    dot d w v ≤ M * sum d fun j => abs (w j) := by
  rw [dot_comm]; exact holder_one h

/-- sum alpha_i m_i = w.v + b sum alpha_i y_i, the equation of (1). -/
theorem weighted_margins (P : Problem K) (α w : Nat → K) (b : K) :
    sum P.rows (fun i => α i * P.margin w b i) = dot P.columns w (P.combination α) + b * P.imbalance α := by
  have general (n : Nat) : sum n (fun i => α i * P.margin w b i)
      = dot P.columns w (fun j => sum n fun i => α i * (P.y i * P.x i j)) + b * sum n (fun i => α i * P.y i) := by
    induction n with
    | zero =>
      have : dot P.columns w (fun _ => (0 : K)) = 0 := sum_eq_zero fun j _ => by grind
      simp only [sum]; grind
    | succ n ih =>
      have e : (fun j => sum (n + 1) fun i => α i * (P.y i * P.x i j))
          = fun j => (sum n fun i => α i * (P.y i * P.x i j)) + (α n * P.y n) * P.x n j :=
        funext fun j => by simp only [sum]; grind
      have m : P.margin w b n = P.y n * (dot P.columns w (P.x n) + b) := rfl
      rw [e, dot_linear]
      simp only [sum]; rw [ih, m]; grind
  exact general P.rows

/-! ## Hard margin -/

/-- m sum alpha_i <= w.v, where m <= m_i for the rows with alpha_i > 0. -/
theorem hard_gap (P : Problem K) {α w : Nat → K} {b m : K} (hα : ∀ i, i < P.rows → 0 ≤ α i)
    (balanced : b * P.imbalance α = 0) (hm : ∀ i, i < P.rows → 0 < α i → m ≤ P.margin w b i) :
    m * sum P.rows α ≤ dot P.columns w (P.combination α) := by
  have h1 := weighted_margins P α w b
  have h2 : sum P.rows (fun i => 0 + m * α i) ≤ sum P.rows (fun i => α i * P.margin w b i) := sum_le fun i hi => by
    by_cases h : 0 < α i
    · have := mul_nonneg (a := α i) (b := P.margin w b i - m) (hα i hi) (by have := hm i hi h; grind)
      grind
    · have : α i = 0 := by have := hα i hi; grind
      rw [this]; grind
  have h3 := sum_linear P.rows (fun _ => 0) α m
  have h4 : sum P.rows (fun _ => (0 : K)) = 0 := sum_eq_zero fun _ _ => rfl
  grind

/-- Upper bound |v|_p / sum alpha_i of the hard margin, for every p. -/
theorem hard_upper (P : Problem K) {α w : Nat → K} {b m nw nv : K} (hα : ∀ i, i < P.rows → 0 ≤ α i)
    (balanced : b * P.imbalance α = 0) (hm : ∀ i, i < P.rows → 0 < α i → m ≤ P.margin w b i)
    (holder : dot P.columns w (P.combination α) ≤ nw * nv) : m * sum P.rows α ≤ nw * nv := by
  have := hard_gap P hα balanced hm
  grind

/-- The same for p = 2: m^2 (sum alpha_i)^2 <= |w|_2^2 |v|_2^2. -/
theorem hard_upper_two (P : Problem K) {α w : Nat → K} {b m : K} (hα : ∀ i, i < P.rows → 0 ≤ α i)
    (balanced : b * P.imbalance α = 0) (hm : ∀ i, i < P.rows → 0 < α i → m ≤ P.margin w b i) (h0 : 0 ≤ m) :
    (m * sum P.rows α) * (m * sum P.rows α)
      ≤ dot P.columns w w * dot P.columns (P.combination α) (P.combination α) := by
  have h1 := hard_gap P hα balanced hm
  have h2 := mul_nonneg h0 (sum_nonneg hα)
  have h3 := square_le h2 h1
  have h4 := holder_two P.columns w (P.combination α)
  grind

/-- Gordan: with v = 0 and sum alpha_i > 0 every (w, b) has a row with alpha_i > 0 and m_i <= 0. -/
theorem gordan (P : Problem K) {α w : Nat → K} {b : K} (hα : ∀ i, i < P.rows → 0 ≤ α i)
    (balanced : b * P.imbalance α = 0) (hv : ∀ j, j < P.columns → P.combination α j = 0)
    (some : 0 < sum P.rows α) : ¬ ∀ i, i < P.rows → 0 < α i → 0 < P.margin w b i := by
  intro separates
  have h1 := weighted_margins P α w b
  have h2 : dot P.columns w (P.combination α) = 0 := sum_eq_zero fun j hj => by
    have := hv j hj
    grind
  have positive (n : Nat) (hn : n ≤ P.rows) :
      0 < sum n α → 0 < sum n fun i => α i * P.margin w b i := by
    induction n with
    | zero => simp only [sum]; grind
    | succ n ih =>
      have hn' : n < P.rows := hn
      have ha := hα n hn'
      have ih := ih (Nat.le_of_lt hn')
      have rest : 0 ≤ sum n fun i => α i * P.margin w b i := sum_nonneg fun i hi => by
        have hi : i < P.rows := Nat.lt_trans hi hn'
        have h0 := hα i hi
        by_cases h : 0 < α i
        · have := OrderedRing.mul_pos h (separates i hi h)
          grind
        · have : α i = 0 := by grind
          rw [this]; grind
      simp only [sum]
      intro h
      by_cases h' : 0 < α n
      · have := OrderedRing.mul_pos h' (separates n hn' h')
        grind
      · have : α n = 0 := by grind
        have := ih (by grind)
        rw [‹α n = 0›]; grind
  have := positive P.rows (Nat.le_refl _) some
  grind

/-! ## Hinge and squared hinge -/

/-- G <= w.v + losses of the hinge, G = sum alpha_i, where 0 <= alpha_i <= C s_i. -/
theorem hinge_gap [DecidableLE K] (P : Problem K) {α w : Nat → K} {b : K}
    (hα : ∀ i, i < P.rows → 0 ≤ α i ∧ α i ≤ P.C * P.s i) (balanced : b * P.imbalance α = 0) :
    sum P.rows α ≤ dot P.columns w (P.combination α) + P.hinge w b := by
  have h1 := weighted_margins P α w b
  have h2 : sum P.rows (fun i => α i + (-1) * (α i * P.margin w b i))
      ≤ sum P.rows (fun i => 0 + P.C * (P.s i * pos (1 - P.margin w b i))) := sum_le fun i hi => by
    have h3 := pos_nonneg (1 - P.margin w b i)
    have h4 := le_pos (1 - P.margin w b i)
    have h5 := hα i hi
    have := mul_nonneg (a := P.C * P.s i - α i) (b := pos (1 - P.margin w b i)) (by grind) h3
    have := mul_nonneg (a := α i) (b := pos (1 - P.margin w b i) - (1 - P.margin w b i)) h5.1 (by grind)
    grind
  have h6 := sum_linear P.rows α (fun i => α i * P.margin w b i) (-1)
  have h7 := sum_linear P.rows (fun _ => 0) (fun i => P.s i * pos (1 - P.margin w b i)) P.C
  have h8 : sum P.rows (fun _ => (0 : K)) = 0 := sum_eq_zero fun _ _ => rfl
  simp only [Problem.hinge]; grind

/-- c max(0, u)^2 >= a u - r, where a^2 <= 4 c r: r is a^2 / (4 c), or any number above it. -/
theorem squared_row [DecidableLE K] {a c r u : K} (ha : 0 ≤ a) (hc : 0 ≤ c) (hr : 0 ≤ r)
    (h : a * a ≤ 4 * (c * r)) : a * u - r ≤ c * (pos u * pos u) := by
  by_cases hu : 0 ≤ u
  · have e : pos u = u := by unfold pos; grind
    rw [e]
    by_cases hc' : 0 < c
    · have := square_nonneg (2 * (c * u) - a)
      exact le_of_mul_le hc' (by grind)
    · have hc : c = 0 := by grind
      subst hc
      have : a ≤ 0 := le_of_square_le (b := 0) (by grind) (by grind)
      have ha : a = 0 := by grind
      rw [ha]; grind
  · have e : pos u = 0 := by unfold pos; grind
    rw [e]
    have := mul_nonneg (a := a) (b := -u) ha (by grind)
    grind

/-- G <= w.v + losses of the squared hinge, G = sum (alpha_i - r_i), where alpha_i^2 <= 4 C s_i r_i. -/
theorem squared_gap [DecidableLE K] (P : Problem K) {α r w : Nat → K} {b : K}
    (hα : ∀ i, i < P.rows →
      0 ≤ α i ∧ 0 ≤ r i ∧ 0 ≤ P.C * P.s i ∧ α i * α i ≤ 4 * (P.C * P.s i * r i))
    (balanced : b * P.imbalance α = 0) :
    sum P.rows (fun i => α i - r i) ≤ dot P.columns w (P.combination α) + P.squaredHinge w b := by
  have h1 := weighted_margins P α w b
  have h2 : sum P.rows (fun i => (α i - r i) + (-1) * (α i * P.margin w b i))
      ≤ sum P.rows (fun i => 0 + P.C * (P.s i * (pos (1 - P.margin w b i) * pos (1 - P.margin w b i)))) :=
    sum_le fun i hi => by
      have ⟨ha, hr, hc, h⟩ := hα i hi
      have := squared_row (u := 1 - P.margin w b i) ha hc hr h
      grind
  have h6 := sum_linear P.rows (fun i => α i - r i) (fun i => α i * P.margin w b i) (-1)
  have h7 := sum_linear P.rows (fun _ => 0) (fun i => P.s i * (pos (1 - P.margin w b i) * pos (1 - P.margin w b i))) P.C
  have h8 : sum P.rows (fun _ => (0 : K)) = 0 := sum_eq_zero fun _ _ => rfl
  simp only [Problem.squaredHinge]; grind

/-- Lower bound G - |v|_p^2 / 2 for power 2, every p and either loss L: `gap` is `hinge_gap` or `squared_gap`. -/
theorem lower_power_two {G wv nw nv L : K} (gap : G ≤ wv + L) (holder : wv ≤ nw * nv) :
    G - nv * nv / 2 ≤ nw * nw / 2 + L := by
  have := square_nonneg (nw - nv)
  grind

/-- Lower bound for power 1, every p and either loss: lower <= G and lower |v|_p <= G, as for G / max(1, |v|_p). -/
theorem lower_power_one {G wv nw nv L lower : K} (gap : G ≤ wv + L) (holder : wv ≤ nw * nv) (hw : 0 ≤ nw)
    (hL : 0 ≤ L) (h0 : 0 < lower) (h1 : lower ≤ G) (h2 : lower * nv ≤ G) : lower ≤ nw + L := by
  have := mul_nonneg (a := lower) (b := wv + L - G) (by grind) (by grind)
  have := mul_nonneg (a := lower) (b := nw * nv - wv) (by grind) (by grind)
  have := mul_nonneg (a := nw) (b := G - lower * nv) hw (by grind)
  have := mul_nonneg (a := G - lower) (b := L) (by grind) hL
  exact le_of_mul_le (c := G) (by grind) (by grind)

/-- Hinge, power 2, p = 2: sum alpha_i - |v|_2^2 / 2 <= |w|_2^2 / 2 + C sum s_i max(0, 1 - m_i). -/
theorem hinge_lower_two [DecidableLE K] (P : Problem K) {α w : Nat → K} {b : K}
    (hα : ∀ i, i < P.rows → 0 ≤ α i ∧ α i ≤ P.C * P.s i) (balanced : b * P.imbalance α = 0) :
    sum P.rows α - dot P.columns (P.combination α) (P.combination α) / 2
      ≤ dot P.columns w w / 2 + P.hinge w b := by
  have := hinge_gap P (w := w) hα balanced
  have := dot_le_halves P.columns w (P.combination α)
  grind

/-- Squared hinge, power 2, p = 2. -/
theorem squared_lower_two [DecidableLE K] (P : Problem K) {α r w : Nat → K} {b : K}
    (hα : ∀ i, i < P.rows →
      0 ≤ α i ∧ 0 ≤ r i ∧ 0 ≤ P.C * P.s i ∧ α i * α i ≤ 4 * (P.C * P.s i * r i))
    (balanced : b * P.imbalance α = 0) :
    sum P.rows (fun i => α i - r i) - dot P.columns (P.combination α) (P.combination α) / 2
      ≤ dot P.columns w w / 2 + P.squaredHinge w b := by
  have := squared_gap P (w := w) hα balanced
  have := dot_le_halves P.columns w (P.combination α)
  grind

/-- Power 1, p = 2, either loss: the checker tests lower <= G and |v|_2^2 <= (G / lower)^2, multiplied by lower^2. -/
theorem lower_power_one_two {d : Nat} {w v : Nat → K} {G nw L lower : K} (gap : G ≤ dot d w v + L) (hw : 0 ≤ nw)
    (norm : dot d w w ≤ nw * nw) (hL : 0 ≤ L) (h0 : 0 < lower) (h1 : lower ≤ G)
    (h2 : lower * lower * dot d v v ≤ G * G) : lower ≤ nw + L := by
  have hv := dot_self_nonneg d v
  have h3 : lower * dot d w v ≤ G * nw := le_of_square_le (mul_nonneg (by grind) hw) (by
    have h4 := mul_nonneg (a := lower * lower) (b := dot d w w * dot d v v - dot d w v * dot d w v)
      (square_nonneg lower) (by have := holder_two d w v; grind)
    have h5 := mul_le_mul norm h2 (square_nonneg nw) (mul_nonneg (square_nonneg lower) hv)
    grind)
  have := mul_nonneg (a := lower) (b := dot d w v + L - G) (by grind) (by grind)
  have := mul_nonneg (a := G - lower) (b := L) (by grind) hL
  exact le_of_mul_le (c := G) (by grind) (by grind)

theorem hinge_nonneg [DecidableLE K] (P : Problem K) (w : Nat → K) (b : K) (hC : 0 ≤ P.C)
    (hs : ∀ i, i < P.rows → 0 ≤ P.s i) : 0 ≤ P.hinge w b :=
  mul_nonneg hC (sum_nonneg fun i hi => mul_nonneg (hs i hi) (pos_nonneg _))

theorem squared_nonneg [DecidableLE K] (P : Problem K) (w : Nat → K) (b : K) (hC : 0 ≤ P.C)
    (hs : ∀ i, i < P.rows → 0 ≤ P.s i) : 0 ≤ P.squaredHinge w b :=
  mul_nonneg hC (sum_nonneg fun i hi => mul_nonneg (hs i hi) (square_nonneg _))

/-! ## What the checker decides, for p = 2

The propositions below are those that `bounds_hold` of checker/check.py decides for p = 2, where `norm_at_most(v, 2, R)`
is `dot d v v <= R`. `r` are the terms alpha_i^2 / (4 C s_i), rounded up. `free` tells whether the intercept is free;
otherwise it is 0.
-/

inductive Loss where
  | hinge
  | squared

def Problem.losses [DecidableLE K] (P : Problem K) (loss : Loss) (w : Nat → K) (b : K) : K :=
  match loss with
  | .hinge => P.hinge w b
  | .squared => P.squaredHinge w b

/-- G. -/
def Problem.gains (P : Problem K) (loss : Loss) (α r : Nat → K) : K :=
  match loss with
  | .hinge => sum P.rows α
  | .squared => sum P.rows fun i => α i - r i

/-- The conditions on one dual variable. -/
def Loss.Bounded (loss : Loss) (C s α r : K) : Prop :=
  match loss with
  | .hinge => 0 ≤ s ∧ 0 ≤ α ∧ α ≤ C * s
  | .squared => 0 ≤ s ∧ 0 ≤ α ∧ 0 ≤ r ∧ α * α ≤ 4 * (C * s * r)

def Problem.Feasible (P : Problem K) (loss : Loss) (free : Bool) (α r : Nat → K) : Prop :=
  0 ≤ P.C ∧ (free = true → P.imbalance α = 0) ∧ ∀ i, i < P.rows → loss.Bounded P.C (P.s i) (α i) (r i)

/-- The test of a lower bound for power 2. -/
def Problem.LowerTwo (P : Problem K) (loss : Loss) (free : Bool) (α r : Nat → K) (lower : K) : Prop :=
  P.Feasible loss free α r ∧
    (lower = 0 ∨ dot P.columns (P.combination α) (P.combination α) ≤ 2 * (P.gains loss α r - lower))

/-- The test of a lower bound for power 1. -/
def Problem.LowerOne (P : Problem K) (loss : Loss) (free : Bool) (α r : Nat → K) (lower : K) : Prop :=
  P.Feasible loss free α r ∧
    (lower = 0 ∨ (0 < lower ∧ lower ≤ P.gains loss α r ∧ dot P.columns (P.combination α) (P.combination α)
      ≤ (P.gains loss α r / lower) * (P.gains loss α r / lower)))

/-- The test of an upper bound of the hard margin. -/
def Problem.HardUpper (P : Problem K) (free : Bool) (α : Nat → K) (upper : K) : Prop :=
  (free = true → P.imbalance α = 0) ∧ (∀ i, i < P.rows → 0 ≤ α i ∧ (0 < α i → 0 < P.s i)) ∧
    0 < sum P.rows α ∧ dot P.columns (P.combination α) (P.combination α)
      ≤ (upper * sum P.rows α) * (upper * sum P.rows α)

omit [LE K] [LT K] [Std.LawfulOrderLT K] [Std.IsLinearOrder K] [OrderedRing K] in
theorem balance {P : Problem K} {α : Nat → K} {free : Bool} {b : K} (h : free = true → P.imbalance α = 0)
    (hb : free = false → b = 0) : b * P.imbalance α = 0 := by
  cases free with
  | true => rw [h rfl]; grind
  | false => rw [hb rfl]; grind

theorem losses_nonneg [DecidableLE K] {P : Problem K} {loss : Loss} {free : Bool} {α r : Nat → K}
    (h : P.Feasible loss free α r) (w : Nat → K) (b : K) : 0 ≤ P.losses loss w b := by
  have ⟨hC, _, hα⟩ := h
  cases loss with
  | hinge => exact hinge_nonneg P w b hC fun i hi => (hα i hi).1
  | squared => exact squared_nonneg P w b hC fun i hi => (hα i hi).1

theorem gap [DecidableLE K] {P : Problem K} {loss : Loss} {free : Bool} {α r : Nat → K}
    (h : P.Feasible loss free α r) (w : Nat → K) (b : K) (hb : free = false → b = 0) :
    P.gains loss α r ≤ dot P.columns w (P.combination α) + P.losses loss w b := by
  have ⟨hC, balanced, hα⟩ := h
  cases loss with
  | hinge => exact hinge_gap P (fun i hi => (hα i hi).2) (balance balanced hb)
  | squared =>
    exact squared_gap P (fun i hi =>
      have ⟨hs, ha, hr, hq⟩ := hα i hi
      ⟨ha, hr, mul_nonneg hC hs, hq⟩) (balance balanced hb)

/-- The test for power 2 proves the lower bound. -/
theorem lower_two_sound [DecidableLE K] {P : Problem K} {loss : Loss} {free : Bool} {α r : Nat → K} {lower : K}
    (test : P.LowerTwo loss free α r lower) (w : Nat → K) (b : K) (hb : free = false → b = 0) :
    lower ≤ dot P.columns w w / 2 + P.losses loss w b := by
  have ⟨feasible, h⟩ := test
  have h1 := gap feasible w b hb
  have h2 := losses_nonneg feasible w b
  have h3 := dot_self_nonneg P.columns w
  have h4 := dot_le_halves P.columns w (P.combination α)
  rcases h with h | h <;> grind

/-- The test for power 1 proves the lower bound; N is any number with N >= |w|_2. -/
theorem lower_one_sound [DecidableLE K] {P : Problem K} {loss : Loss} {free : Bool} {α r : Nat → K} {lower : K}
    (test : P.LowerOne loss free α r lower) (w : Nat → K) (b N : K) (hb : free = false → b = 0) (hN : 0 ≤ N)
    (norm : dot P.columns w w ≤ N * N) : lower ≤ N + P.losses loss w b := by
  have ⟨feasible, h⟩ := test
  have h1 := gap feasible w b hb
  have h2 := losses_nonneg feasible w b
  rcases h with h | ⟨h0, hG, hv⟩
  · grind
  · have scaled {G q D : K} (e : q * lower = G) (h : D ≤ q * q) : lower * lower * D ≤ G * G := by
      subst e
      have := mul_nonneg (square_nonneg lower) (b := q * q - D) (by grind)
      grind
    exact lower_power_one_two h1 hN norm h2 h0 hG (scaled (by grind) hv)

/-- The test for the hard margin proves the upper bound: m / |w|_2 <= upper for every m >= 0 below the margins. -/
theorem hard_upper_sound {P : Problem K} {free : Bool} {α : Nat → K} {upper : K} (test : P.HardUpper free α upper)
    (w : Nat → K) (b m : K) (hb : free = false → b = 0) (h0 : 0 ≤ m)
    (hm : ∀ i, i < P.rows → 0 < P.s i → m ≤ P.margin w b i) : m * m ≤ upper * upper * dot P.columns w w := by
  have ⟨balanced, hα, hG, hv⟩ := test
  have h1 := hard_upper_two P (w := w) (fun i hi => (hα i hi).1) (balance balanced hb)
    (fun i hi ha => hm i hi ((hα i hi).2 ha)) h0
  have h2 := mul_nonneg (dot_self_nonneg P.columns w) (b := upper * sum P.rows α * (upper * sum P.rows α)
    - dot P.columns (P.combination α) (P.combination α)) (by grind)
  exact le_of_mul_le (OrderedRing.mul_pos hG hG) (by grind)

end OrderedField

/-! ## The tests as Boolean functions of rational numbers

They are stated, not run: `noncomputable` spares builds of Lean without compiled code of the core its compilation.
-/

noncomputable instance {loss : Loss} {C s α r : Rat} : Decidable (loss.Bounded C s α r) := by
  cases loss <;> unfold Loss.Bounded <;> infer_instance

noncomputable instance {P : Problem Rat} {loss : Loss} {free : Bool} {α r : Nat → Rat} :
    Decidable (P.Feasible loss free α r) := by
  unfold Problem.Feasible; infer_instance

noncomputable instance {P : Problem Rat} {loss : Loss} {free : Bool} {α r : Nat → Rat} {lower : Rat} :
    Decidable (P.LowerTwo loss free α r lower) := by
  unfold Problem.LowerTwo; infer_instance

noncomputable instance {P : Problem Rat} {loss : Loss} {free : Bool} {α r : Nat → Rat} {lower : Rat} :
    Decidable (P.LowerOne loss free α r lower) := by
  unfold Problem.LowerOne; infer_instance

noncomputable instance {P : Problem Rat} {free : Bool} {α : Nat → Rat} {upper : Rat} :
    Decidable (P.HardUpper free α upper) := by
  unfold Problem.HardUpper; infer_instance

/-- Lower bound for power 2 and upper bound P(w, b) of the stated point, for either loss. -/
noncomputable def check (P : Problem Rat) (loss : Loss) (free : Bool) (α r w : Nat → Rat) (b lower upper : Rat) :
    Bool :=
  decide (P.LowerTwo loss free α r lower) && decide (free = false → b = 0)
    && decide (dot P.columns w w ≤ 2 * (upper - P.losses loss w b))

/-- A certificate that `check` accepts brackets the least objective: no point is below `lower`, one is not above `upper`. -/
theorem check_sound {P : Problem Rat} {loss : Loss} {free : Bool} {α r w : Nat → Rat} {b lower upper : Rat}
    (h : check P loss free α r w b lower upper = true) :
    (∀ (w' : Nat → Rat) (b' : Rat), (free = false → b' = 0) →
      lower ≤ dot P.columns w' w' / 2 + P.losses loss w' b') ∧
    (free = false → b = 0) ∧ dot P.columns w w / 2 + P.losses loss w b ≤ upper := by
  simp only [check, Bool.and_eq_true, decide_eq_true_eq] at h
  have ⟨⟨test, hb⟩, hu⟩ := h
  exact ⟨lower_two_sound test, hb, by grind⟩

/-- A hard margin bound that the test accepts holds for every separator. -/
theorem hard_check_sound {P : Problem Rat} {free : Bool} {α : Nat → Rat} {upper : Rat}
    (h : decide (P.HardUpper free α upper) = true) (w : Nat → Rat) (b m : Rat) (hb : free = false → b = 0)
    (h0 : 0 ≤ m) (hm : ∀ i, i < P.rows → 0 < P.s i → m ≤ P.margin w b i) :
    m * m ≤ upper * upper * dot P.columns w w :=
  hard_upper_sound (of_decide_eq_true h) w b m hb h0 hm

end MaxMargin
