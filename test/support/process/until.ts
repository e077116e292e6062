// Waiting in tests: for a condition, never for a time.

/**
 * @returns what `condition` answered, once that is anything but false, null and the like
 * @throws with what it last threw when that takes too long
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  limitMs = 60_000,
): Promise<NonNullable<T>> {
  const deadline = performance.now() + limitMs
  let failure: unknown
  while (performance.now() < deadline) {
    try {
      const value = await condition()
      if (value) return value
      failure = undefined
    } catch (error) {
      failure = error
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`gave up after ${limitMs} ms: ${what}`, { cause: failure })
}
