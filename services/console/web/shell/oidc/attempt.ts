/**
 * The way to the identity provider and back. At sign-in the whole window goes there. A page that is
 * open stays: the provider is then shown in a small window, which says when it is done.
 */
import { ApiProblem, api, ok, prefix } from '../../api/client.ts'

/** `in`: to sign in; `up`: to prove again who has the session. */
export type Purpose = 'in' | 'up'

const channelName = 'di-oidc'
const returnKey = 'di-oidc-return'

const begin = (purpose: Purpose) =>
  purpose === 'in'
    ? ok(api.POST('/admin/v1/session/oidc', { params: {}, body: {} }))
    : ok(api.POST('/admin/v1/session/step-up/oidc', { params: {}, body: {} }))

/** Hands in what the provider returned with. */
export const finish = (purpose: Purpose, query: string) =>
  purpose === 'in'
    ? ok(api.POST('/admin/v1/session/oidc/return', { params: {}, body: { query } }))
    : ok(api.POST('/admin/v1/session/step-up/oidc/return', { params: {}, body: { query } }))

/** Goes to the provider to sign in; the address that is open now is opened again afterwards. */
export async function leaveForProvider(): Promise<void> {
  const { url } = await begin('in')
  const { pathname, search, hash } = location
  // An invitation is used by then.
  const isInvitation = pathname === `${prefix}/invite`
  sessionStorage.setItem(returnKey, isInvitation ? `${prefix}/` : pathname + search + hash)
  location.assign(url)
}

/**
 * Opens the provider in a small window; call it in the handler of a click.
 * @returns when the person is done there; a window that is closed before leaves it waiting
 * @throws ApiProblem when the provider cannot be used
 */
export async function openProvider(purpose: Purpose): Promise<void> {
  sessionStorage.removeItem(returnKey)
  const opened = window.open('', '', 'popup,width=520,height=700')
  if (opened === null) {
    const detail = 'The browser did not open a window: allow windows of this site, then try again.'
    throw new ApiProblem({ status: 0, code: 'no_window', detail, requestId: null })
  }
  const channel = new BroadcastChannel(channelName)
  try {
    const { promise, resolve } = Promise.withResolvers<void>()
    channel.onmessage = ({ data }) => data === purpose && resolve()
    const { url } = await begin(purpose)
    opened.location.href = url
    await promise
  } catch (error) {
    opened.close()
    throw error
  } finally {
    channel.close()
  }
}

/** Tells the page that opened this window. */
export function announce(purpose: Purpose): void {
  const channel = new BroadcastChannel(channelName)
  channel.postMessage(purpose)
  channel.close()
}

/** The address to open after a sign-in, once; null in a small window. */
export function takeReturn(): string | null {
  const address = sessionStorage.getItem(returnKey)
  sessionStorage.removeItem(returnKey)
  return address
}
