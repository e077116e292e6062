/**
 * Who is signed in, and the calls that change it. The session itself is an HttpOnly cookie: scripts
 * never see it.
 */
import { queryOptions } from '@tanstack/react-query'
import { ApiProblem, prefix } from './client.ts'

export type Role = 'viewer' | 'analyst' | 'engineer' | 'admin'

export type Operator = {
  operator_id: string
  email: string
  name: string
  role: Role
  tenants: 'all' | string[]
  totp: boolean
}

export type Session = {
  session_id: string
  created_at: string
  expires_at: string
  idle_expires_at: string
  step_up_until: string | null
}

export type SignedIn = { operator: Operator; session: Session }

export type Invitation = { email: string; role: Role; expires_at: string }

const ranks: Role[] = ['viewer', 'analyst', 'engineer', 'admin']

/** Whether a role may do what needs another. */
export const mayAs = (role: Role, needed: Role): boolean =>
  ranks.indexOf(role) >= ranks.indexOf(needed)

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${prefix}/admin/v1${path}`, {
    method,
    credentials: 'same-origin',
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  }).catch(() => {
    throw new ApiProblem({
      status: 0,
      code: 'unreachable',
      detail: 'The console cannot be reached. Check the connection, then try again.',
      requestId: null,
    })
  })
  const text = await response.text()
  const answer = text === '' ? {} : JSON.parse(text)
  if (response.ok) return answer as T
  throw new ApiProblem({
    status: response.status,
    code: answer.code ?? 'unknown',
    detail: answer.detail ?? `The console answered ${response.status}.`,
    requestId: response.headers.get('x-request-id'),
    errors: answer.errors ?? [],
  })
}

/** Null when nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async (): Promise<SignedIn | null> => {
    try {
      return await call<SignedIn>('GET', '/session')
    } catch (error) {
      if (error instanceof ApiProblem && error.status === 401) return null
      throw error
    }
  },
  staleTime: Number.POSITIVE_INFINITY,
})

export const signIn = (body: { email: string; password: string; code?: string }) =>
  call<SignedIn>('POST', '/session', body)

export const signOut = () => call<unknown>('DELETE', '/session')

export const stepUp = (body: { password?: string; code?: string }) =>
  call<unknown>('POST', '/session/step-up', body)

export const findInvitation = (token: string) =>
  call<Invitation>('GET', `/invitations/${encodeURIComponent(token)}`)

export const acceptInvitation = (token: string, body: { name: string; password: string }) =>
  call<SignedIn>('POST', `/invitations/${encodeURIComponent(token)}`, body)
