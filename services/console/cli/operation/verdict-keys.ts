/** `di verdict-keys ...`: the keys that sign verdict tokens. */
import { type Answer, change, group, read } from '../commands.ts'
import { type Column, toColumns, toTime } from '../tables.ts'

const path = '/verdict-keys'

type Keys = Answer<typeof path>
type RotateOptions = { revoke?: boolean }

const columns: readonly Column<Keys['data'][number]>[] = [
  ['KEY', 'kid'],
  ['STATE', 'state'],
  ['PUBLISHED', 'created_at'],
  ['SIGNS SINCE', ({ current_since: since }) => toTime(since)],
  ['REPLACED', ({ replaced_at: at }) => toTime(at)],
  ['PUBLISHED UNTIL', ({ kept_until: until }) => toTime(until)],
]

export const verdictKeys = group('verdict-keys', 'the keys that sign verdict tokens', [
  read('list', 'list the published keys', path, { columns, empty: 'There is no key yet.' }),
  change(
    'rotate',
    'sign with the next key; returns once every edge does. The key before stays published until ' +
      'its last token has expired',
    ['post', `${path}/rotate`],
    {
      options: [['--revoke', 'withdraw the current key at once, when it may be known to others']],
      body: ({ revoke = false }: RotateOptions) => ({ revoke }),
      text: ({ data }) => toColumns(columns, data),
    },
  ),
])
