// What a click with the Shift key selects in the list of alerts.
import { expect, it } from 'vitest'
import { toRange } from '../../../services/console/web/pages/alerts/list/select-range.ts'

const order = ['a', 'b', 'c', 'd', 'e']

it.each([
  ['b', 'd', ['b', 'c', 'd']],
  ['d', 'b', ['b', 'c', 'd']],
  ['c', 'c', ['c']],
  [null, 'c', ['c']],
  ['gone', 'c', ['c']],
  ['a', 'not loaded', ['not loaded']],
])('from %s to %s are %j', (from, to, expected) => {
  expect(toRange(order, from, to)).toEqual(expected)
})
