// A cursor of an earlier release continues its list.
import { expect, it } from 'vitest'
import { listAlertsByQuery } from '#shared/io/alerts/list-by-query.ts'

type ListAlerts = Parameters<typeof listAlertsByQuery>[0]

const last = { createdAtMs: 1_790_000_000_000, alertId: 'alr_last' }

async function askPage(query: Parameters<typeof listAlertsByQuery>[2]) {
  let after: unknown
  const listAlerts: ListAlerts = async (page) => {
    after = page.after
    return { alerts: [], total: 1, next: last }
  }
  return { ...(await listAlertsByQuery(listAlerts, 'acme', query)), after }
}

// Made by the release of 2026-11-27.
const cursors = [
  { filter: {}, cursor: 'WyJBLVIxZC1CWm9vV1R3UERvIiwxNzkwMDAwMDAwMDAwLCJhbHJfbGFzdCJd' },
  {
    filter: { decision: ['BLOCK'], min_score: 80, assignee: 'none', from: 1_780_000_000_000 },
    cursor: 'WyJCOU82bjBSbEVQY1VwelFqIiwxNzkwMDAwMDAwMDAwLCJhbHJfbGFzdCJd',
  },
] as const

it.each(cursors)('a cursor of an earlier release: $filter', async ({ filter, cursor }) => {
  const page = await askPage({ ...filter, limit: 50, cursor })
  expect(page.after).toEqual(last)
  expect(page.next_cursor).toBe(cursor)
  await expect(askPage({ ...filter, min_score: 81, limit: 50, cursor })).rejects.toThrow('cursor')
})
