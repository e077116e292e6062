// The table of alert filters, and what is made of it.
import { describe, expect, it } from 'vitest'
import {
  type AlertFilter,
  alertFilters,
  filterNames,
  isCounted,
  listGiven,
} from '#shared/core/alerts/alert-filters.ts'
import { adminAlertsQuerySchema, alertsQuerySchema } from '#shared/core/http/api-schemas.ts'

describe('the filters of alerts', () => {
  it('are all parameters of the admin API, and of the REST API unless they are for operators', () => {
    const paging = ['limit', 'cursor']
    // By `seq`, which operators have no use for.
    const positions = ['after_seq']
    const admin = Object.keys(adminAlertsQuerySchema.shape)
    expect(admin.filter((name) => !paging.includes(name)).sort()).toEqual([...filterNames].sort())
    const forTenants = filterNames.filter((name) => !('operatorsOnly' in alertFilters[name]))
    expect(Object.keys(alertsQuerySchema.shape)).toEqual([...forTenants, ...paging, ...positions])
    expect(forTenants).not.toContain('assignee')
  })

  it('are listed in the order of the table, without those that have no value', () => {
    const filter: AlertFilter = { to: 2, user_id: undefined, disposition: ['OPEN'] }
    expect(listGiven(filter).map(({ name, value }) => [name, value])).toEqual([
      ['disposition', ['OPEN']],
      ['to', 2],
    ])
  })

  it('are refused when the table does not have them, instead of widening the list', () => {
    const stored = JSON.parse('{"disposition":["OPEN"],"browser":"x"}') as AlertFilter
    expect(() => listGiven(stored)).toThrow('unknown alert filter: browser')
    expect(() => isCounted(stored)).toThrow('unknown alert filter: browser')
  })
})
