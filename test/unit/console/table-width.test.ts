import { describe, expect, it } from 'vitest'
import { toLeastRem } from '../../../services/console/web/components/rows/table-width.ts'

describe('the least width of a table', () => {
  it('leaves 8 rem for each column without a width of its own', () => {
    expect(toLeastRem([{ width: '9rem' }, {}, { width: '3.5rem' }, {}])).toBe(29)
  })

  it('counts a share of the width on top of what the other columns need', () => {
    expect(toLeastRem([{ width: '25%' }, {}, { width: '22rem' }])).toBe(40)
  })
})
