// Free addresses for a service that a test runs as a separate process.
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import type { ServiceName } from '../../../deploy/local/stack/settings.ts'

export type ServiceAddresses = {
  /** Its listen variables. */
  env: Record<string, string>
  url: string
  /** The URL of `/readyz` and `/metrics`: the same where the process has one listener. */
  internalUrl: string
}

/** Chooses free ports on 127.0.0.1. */
export async function chooseAddresses(name: ServiceName): Promise<ServiceAddresses> {
  const variable = name.toUpperCase()
  const listen = `127.0.0.1:${await choosePort({})}`
  const env = { [`${variable}_LISTEN`]: listen }
  if (name === 'scorer' || name === 'delivery') {
    return { env, url: `http://${listen}`, internalUrl: `http://${listen}` }
  }
  const internal = `127.0.0.1:${await choosePort({})}`
  return {
    env: { ...env, [`${variable}_INTERNAL_LISTEN`]: internal },
    url: `http://${listen}`,
    internalUrl: `http://${internal}`,
  }
}
