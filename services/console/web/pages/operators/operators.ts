/** The lists of operators and of invitations, for administrators of all tenants. */
import { queryOptions } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type ListedOperator = AnswerOf<'/admin/v1/operators', 'get'>['data'][number]
export type Invitation = AnswerOf<'/admin/v1/operators/invitations', 'get'>['data'][number]

export const operatorsQuery = queryOptions({
  queryKey: ['operators'],
  queryFn: () => ok(api.GET('/admin/v1/operators', { params: {} })),
})

export const invitationsQuery = queryOptions({
  queryKey: ['operators', 'invitations'],
  queryFn: () => ok(api.GET('/admin/v1/operators/invitations', { params: {} })),
})
