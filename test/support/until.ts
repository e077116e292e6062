// Waiting in tests: for a condition, never for a time.

/** Resolves once `condition` holds; rejects with what it last saw when that takes too long. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + limitMs
  let failure: unknown
  while (performance.now() < deadline) {
    try {
      if (await condition()) return
      failure = undefined
    } catch (error) {
      failure = error
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`gave up waiting until ${what}`, { cause: failure })
}
