// A command is its operation and its columns: arguments go into the path, options into the query,
// the answer into a table or, with --json, to stdout as it came.
import { Command } from 'commander'
import { expect, it } from 'vitest'
import {
  change,
  cursor,
  group,
  limit,
  read,
  toMore,
} from '../../../services/console/cli/commands.ts'
import type { CliContext } from '../../../services/console/cli/context.ts'

const deliveries = group('deliveries', 'deliveries', [
  read('list <slug>', 'list them', '/tenants/{tenant_id}/deliveries', {
    options: [['--alert <id>', 'of this alert'], limit(50), cursor],
    query: ({ alert, ...more }: { alert?: string }) => ({ ...more, alert_id: alert }),
    columns: [
      ['DELIVERY', 'delivery_id'],
      ['ALERT', 'alert_id'],
      ['CREATED', 'created_at'],
      ['ATTEMPTS', ({ attempts }) => attempts.length],
    ],
    empty: 'There are none.',
    note: toMore,
  }),
  change('replay <slug>', 'send again', ['post', '/tenants/{tenant_id}/deliveries/replay'], {
    options: [['--failed', 'failed ones']],
    body: ({ failed }: { failed?: true }) => ({ failed }),
    text: ({ replayed }) => `${replayed} sent again`,
  }),
])

/** Runs `di deliveries ...` with an API that answers `answer`. @returns the call, and what is printed */
async function run(answer: unknown, ...args: string[]) {
  const calls: unknown[][] = []
  let printed = ''
  const program = new Command('di').exitOverride().configureOutput({ writeErr: () => undefined })
  const context = {
    adminFetch: async (...call: unknown[]) => {
      calls.push(call)
      return answer
    },
    out: (value: unknown, toText: (value: never) => string) => {
      printed = args.includes('--json') ? JSON.stringify(value) : toText(value as never)
    },
  }
  deliveries(program, context as unknown as CliContext)
  await program.parseAsync(['deliveries', ...args], { from: 'user' })
  return { calls, printed }
}

const created_at = '2026-01-02T03:04:05.678Z'
const page = {
  data: [
    { delivery_id: 'd1', alert_id: 'alr_1', created_at, attempts: [{}, {}] },
    { delivery_id: 'd-22', alert_id: null, created_at, attempts: [] },
  ],
  next_cursor: null as string | null,
}

it('puts arguments into the path and options into the query, escaped', async () => {
  const { calls } = await run(page, 'list', 'a/b c', '--alert', 'x&y', '--limit', '7')
  expect(calls).toEqual([['GET', '/tenants/a%2Fb%20c/deliveries?limit=7&alert_id=x%26y']])
  expect((await run(page, 'list', 't')).calls).toEqual([['GET', '/tenants/t/deliveries?limit=50']])
})

it('prints a table, with the cursor of the next page', async () => {
  const { printed } = await run({ ...page, next_cursor: 'next' }, 'list', 't')
  expect(printed.split('\n')).toEqual([
    'DELIVERY  ALERT  CREATED               ATTEMPTS',
    'd1        alr_1  2026-01-02 03:04:05Z  2',
    'd-22      -      2026-01-02 03:04:05Z  0',
    '',
    'More: --cursor next',
  ])
})

it('says that there is nothing, and prints the whole answer with --json', async () => {
  const empty = { data: [], next_cursor: null }
  expect((await run(empty, 'list', 't')).printed).toBe('There are none.')
  expect(JSON.parse((await run(page, 'list', 't', '--json')).printed)).toEqual(page)
})

it('sends a change with its body', async () => {
  const { calls, printed } = await run({ replayed: 2 }, 'replay', 't', '--failed')
  expect(calls).toEqual([['POST', '/tenants/t/deliveries/replay', { failed: true }, {}]])
  expect(printed).toBe('2 sent again')
})

it('refuses a limit out of range, and compiles no path or field that the document lacks', async () => {
  await expect(run(page, 'list', 't', '--limit', '501')).rejects.toThrow('from 1 to 500')
  const columns = [['X', 'no_such_field']] as const
  // @ts-expect-error the path is not in the document
  read('x', 'x', '/tenants/{tenant_id}/nothing', { text: String })
  // @ts-expect-error the field is not in the answer
  read('x <slug>', 'x', '/tenants/{tenant_id}/keys', { columns })
})
