/** Random numbers from a seed, the same on every machine, for figures that must repeat. */

/** @returns numbers in [0, 1) of 32 bits, by Marsaglia's 32-bit xorshift over a Weyl sequence */
export function createSeededRandom(seed: number): () => number {
  let state = (Math.imul(seed | 0, 0x9e3779b1) ^ 0x85ebca6b) | 0 || 1
  let counter = 0
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    counter = (counter + 362_437) | 0
    return ((state + counter) >>> 0) / 2 ** 32
  }
}

/** Above this mean a normal draw is within a hundredth of the distribution everywhere. */
const normalFrom = 50

/** Draws from a Poisson distribution: how often a case that was seen `mean` times is seen again. */
export function drawPoisson(mean: number, random: () => number): number {
  if (mean <= 0) return 0
  if (mean >= normalFrom) {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal))
  }
  const limit = Math.exp(-mean)
  let count = 0
  for (let product = random(); product > limit; product *= random()) count++
  return count
}
