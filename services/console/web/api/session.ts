/**
 * Who is signed in, and the calls that change it. The session itself is an HttpOnly cookie: scripts
 * never see it.
 */
import { queryOptions } from '@tanstack/react-query'
import { type AnswerOf, ApiProblem, api, ok } from './client.ts'

export type SignedIn = AnswerOf<'/admin/v1/session', 'get'>
export type Operator = SignedIn['operator']
export type Role = Operator['role']

export const roles: Role[] = ['viewer', 'analyst', 'engineer', 'admin']

/** Whether a role may do what needs another. */
export const mayAs = (role: Role, needed: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(needed)

/** Null while signed out. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async (): Promise<SignedIn | null> => {
    try {
      return await ok(api.GET('/admin/v1/session', { params: {} }))
    } catch (error) {
      if (error instanceof ApiProblem && error.code === 'unauthorized') return null
      throw error
    }
  },
  staleTime: Number.POSITIVE_INFINITY,
  // After an outage the console comes back by itself.
  refetchInterval: ({ state }) => state.status === 'error' && 3_000,
})

export const signIn = (body: { email: string; password: string; code?: string }) =>
  ok(api.POST('/admin/v1/session', { params: {}, body }))

/** A session that has ended already is as good as one that this ends. */
export async function signOut(): Promise<void> {
  try {
    await ok(api.DELETE('/admin/v1/session', { params: {} }))
  } catch (error) {
    if (!(error instanceof ApiProblem && error.code === 'unauthorized')) throw error
  }
}

export const stepUp = (body: { password?: string; code?: string }) =>
  ok(api.POST('/admin/v1/session/step-up', { params: {}, body }))

/** How people sign in here: by passwords, through an identity provider, or both. */
export const waysQuery = queryOptions({
  queryKey: ['session', 'ways'],
  queryFn: () => ok(api.GET('/admin/v1/session/ways', { params: {} })),
  staleTime: Number.POSITIVE_INFINITY,
})

export const findInvitation = (token: string) =>
  ok(api.GET('/admin/v1/invitations/{token}', { params: { path: { token } } }))

export const acceptInvitation = (token: string, body: { name: string; password: string }) =>
  ok(api.POST('/admin/v1/invitations/{token}', { params: { path: { token } }, body }))
