/**
 * Reports rotated credentials of the demo tenant to the local stack that started this console, so
 * that `stack.json` and the examples of the README keep working. Only the local stack opens such a
 * channel to its console.
 */

/** New credentials of a rotation. Credentials that did not change are left out. */
export type RotatedCredentials = {
  tenant_id: string
  public_api_key?: string
  hmac_secret?: string
  webhook_secret?: string
}

/** The process's channel to its parent. */
type Channel = {
  send?: ((message: object) => unknown) | undefined
  once: (event: 'message', listener: (message: unknown) => void) => unknown
  off: (event: 'message', listener: (message: unknown) => void) => unknown
}

const demoTenantId = 'demo'
/** How long to wait for the stack: it must not delay the console's response for longer. */
const waitMaxMs = 2_000

/** @returns a function that waits until the stack has stored the credentials, if there is one */
export function createDemoReporter(
  channel: Channel,
): (rotated: RotatedCredentials) => Promise<void> {
  return async (rotated) => {
    if (channel.send === undefined || rotated.tenant_id !== demoTenantId) return
    const { tenant_id, public_api_key, hmac_secret, webhook_secret } = rotated
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        channel.off('message', done)
        resolve()
      }
      const timer = setTimeout(done, waitMaxMs)
      channel.once('message', done)
      const demo = { tenant_id, public_api_key, hmac_secret, webhook_secret }
      channel.send?.({ type: 'demo-credentials', demo })
    })
  }
}
