// The view with a column for every signal is a migration made from the catalog.
import { expect, it } from 'vitest'
import { toTypedEventsSql } from '../../support/analytics/typed-events.ts'

it('typed_events has the signals of the catalog: run with -u to write its migration', async () => {
  await expect(toTypedEventsSql()).toMatchFileSnapshot('../../../clickhouse/0012-typed-events.sql')
})
