// Rigs of several parts: they end in the reverse order of their starts, also when a start fails
// halfway.

/** The ends of the parts started so far, in the order of starting. */
export type Closing = (() => Promise<unknown> | unknown)[]

/** Starts a rig. Its stop ends every part, even when others fail, and throws the first failure. */
export async function startWhole<Rig>(
  start: (closing: Closing, stop: () => Promise<void>) => Promise<Rig>,
): Promise<Rig> {
  const closing: Closing = []
  const stop = async () => {
    const failures: unknown[] = []
    for (const close of closing.splice(0).reverse()) {
      try {
        await close()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
  try {
    return await start(closing, stop)
  } catch (error) {
    await stop().catch(() => undefined)
    throw error
  }
}
