/**
 * Tells the local stack that started this console of new credentials of its demo tenant, so that
 * `stack.json` and every example that is pasted from the README keep working after a rotation.
 * Anywhere else there is nothing to tell: only the local stack opens a channel to its console.
 */

/** What a rotation has made; what is left out stays as it was. */
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
/** A stack that does not answer keeps nobody from an answer of the console. */
const answerMaxMs = 2_000

/** @returns waits until the stack has kept the credentials; does nothing without a stack */
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
