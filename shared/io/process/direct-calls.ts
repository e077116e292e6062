/**
 * Calls among our own parts take no proxy, whatever HTTP_PROXY and NODE_USE_ENV_PROXY say: a proxy
 * cannot reach them, and they carry secrets. Deliveries have an agent of their own, without one.
 */
import * as http from 'node:http'

type Env = Record<string, string | undefined>
type WithProxySetting = { setGlobalProxyFromEnv?: (env: Env) => unknown }

/** What is at these places is reached directly; the local stack still downloads through a proxy. */
const ownPlaces = ['127.0.0.1', 'localhost', '::1']

function setProxy(env: Env): void {
  // Older releases of Node 24 have neither this nor a proxy.
  ;(http as WithProxySetting).setGlobalProxyFromEnv?.(env)
}

/** No call of this process takes a proxy. */
export function neverTakeProxy(): void {
  // Without the name of a proxy nothing would be changed.
  setProxy({ http_proxy: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9', no_proxy: '*' })
}

/**
 * Calls of this process to this machine take no proxy, others the environment's if it wants one.
 */
export function callOwnPartsDirectly(env: Env): void {
  if (env.NODE_USE_ENV_PROXY !== '1') return
  const others = env.no_proxy ?? env.NO_PROXY ?? ''
  const places = [...others.split(',').filter((place) => place !== ''), ...ownPlaces].join(',')
  setProxy({ ...env, no_proxy: places, NO_PROXY: places })
}
