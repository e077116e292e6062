/**
 * Reports new credentials of the demo tenant to the local stack that started this console, so that
 * `stack.json` and every example that is pasted from the README keep working after a rotation.
 * Only the local stack opens such a channel to its console.
 */

/** New credentials of a rotation; those that are left out did not change. */
export type NewCredentials = {
  tenant_id: string
  public_api_key?: string
  hmac_secret?: string
  webhook_secret?: string
}

/** The process's channel to the one that started it. */
export type Channel = {
  send?: ((message: object) => unknown) | undefined
  once: (event: 'message', listener: (message: unknown) => void) => unknown
  off: (event: 'message', listener: (message: unknown) => void) => unknown
}

const demoTenantId = 'demo'
/** The limit of waiting for the stack, which must not delay the console's answer. */
const answerMaxMs = 2_000

/** @returns a function that waits until the stack has stored the credentials, if there is one */
export function createStackTeller(channel: Channel): (rotated: NewCredentials) => Promise<void> {
  return async (rotated) => {
    if (channel.send === undefined || rotated.tenant_id !== demoTenantId) return
    const { tenant_id, public_api_key, hmac_secret, webhook_secret } = rotated
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        channel.off('message', done)
        resolve()
      }
      const timer = setTimeout(done, answerMaxMs)
      channel.once('message', done)
      const demo = { tenant_id, public_api_key, hmac_secret, webhook_secret }
      channel.send?.({ type: 'demo-credentials', demo })
    })
  }
}
