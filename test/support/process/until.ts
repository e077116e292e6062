// Waiting in tests: for a condition, never for a fixed time.

/**
 * @returns the first truthy result of `condition`
 * @throws the last error of `condition` at the time limit
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
