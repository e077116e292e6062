/**
 * Keeps calls between our own processes away from HTTP proxies, whatever HTTP_PROXY and
 * NODE_USE_ENV_PROXY say: a proxy cannot reach them, and they carry secrets. Webhook deliveries use
 * their own agent without a proxy.
 */
import * as http from 'node:http'

type Env = Record<string, string | undefined>
type WithProxySetting = { setGlobalProxyFromEnv?: (env: Env) => unknown }

/** Hosts that are always called directly; the local stack still downloads through a proxy. */
const ownHosts = ['127.0.0.1', 'localhost', '::1']

function setProxy(env: Env): void {
  // Older releases of Node 24 have neither this nor a proxy.
  ;(http as WithProxySetting).setGlobalProxyFromEnv?.(env)
}

/** This process uses no proxy at all. */
export function neverTakeProxy(): void {
  // Node ignores `no_proxy` unless a proxy is named.
  setProxy({ http_proxy: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9', no_proxy: '*' })
}

/**
 * Calls of this process to this machine take no proxy, others the environment's if it wants one.
 */
export function callOwnPartsDirectly(env: Env): void {
  if (env.NODE_USE_ENV_PROXY !== '1') return
  const others = env.no_proxy ?? env.NO_PROXY ?? ''
  const hosts = [...others.split(',').filter((host) => host !== ''), ...ownHosts].join(',')
  setProxy({ ...env, no_proxy: hosts, NO_PROXY: hosts })
}
