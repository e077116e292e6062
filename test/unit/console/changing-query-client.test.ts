// A change of an alert by a key can come before the first read of that alert has been answered.
import { QueryObserver } from '@tanstack/query-core'
import { expect, test } from 'vitest'
import { ChangingQueryClient } from '../../../services/console/web/api/changing-query-client.ts'

test('a first read that began before a change is not kept after it', async () => {
  const queryClient = new ChangingQueryClient()
  const reads: ((answer: string) => void)[] = []
  const observer = new QueryObserver(queryClient, {
    queryKey: ['alert', 'one'],
    queryFn: () => new Promise<string>((resolve) => reads.push(resolve)),
  })
  const stop = observer.subscribe(() => undefined)
  expect(reads).toHaveLength(1)
  // The change arrives while the answer of the first read is on its way.
  const readAgain = queryClient.invalidateQueries({ queryKey: ['alert'] })
  await expect.poll(() => reads.length).toBe(2)
  reads[0]!('as it was before')
  reads[1]!('as it is now')
  await readAgain
  expect(observer.getCurrentResult().data).toBe('as it is now')
  stop()
})
