/** Finds the parameters of a query for the SQL page. */
import { describe, expect, it } from 'vitest'
import { readCookbook } from '#shared/io/analytics/cookbook.ts'
import {
  findParameters,
  toDefault,
} from '../../../services/console/web/pages/explore/parameters.ts'

describe('the parameters of a query', () => {
  it('are listed once, in order, with types that contain quotes and brackets', () => {
    const sql = "select {a:UInt8}, {b:DateTime64(3, 'UTC')}, {a:UInt8}, { c : Array(String) }"
    expect(findParameters(sql)).toEqual([
      { name: 'a', type: 'UInt8' },
      { name: 'b', type: "DateTime64(3, 'UTC')" },
      { name: 'c', type: 'Array(String)' },
    ])
  })

  it('are not found in comments and strings, and never include the tenant', () => {
    const sql = "select '{a:Int8}', 'it\\'s {b:Int8}' -- {c:Int8}\n/* {d:Int8} */, {tenant:String}"
    expect(findParameters(sql)).toEqual([])
  })

  it('are not found in an unclosed comment or string', () => {
    expect(findParameters('select 1 /* {a:Int8}')).toEqual([])
    expect(findParameters("select 'x\\' {a:Int8}")).toEqual([])
  })

  it('in the cookbook are those that its files name, plus times', () => {
    for (const { name, sql, parameters } of readCookbook()) {
      const found = findParameters(sql).map((one) => one.name)
      const times = ['from', 'to', 'as_of']
      expect([name, found.filter((one) => !times.includes(one)).sort()]).toEqual([
        name,
        Object.keys(parameters)
          .filter((one) => !times.includes(one))
          .sort(),
      ])
    }
  })

  it('have the last week as default times', () => {
    const nowMs = Date.parse('2026-11-25T10:30:59Z')
    expect(toDefault('to', nowMs)).toBe('2026-11-25 10:31:00.000')
    expect(toDefault('from', nowMs)).toBe('2026-11-18 10:30:00.000')
    expect(toDefault('other', nowMs)).toBe('')
  })
})
