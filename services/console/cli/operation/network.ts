/** `di network status`: the files of network data, what they give, and which are broken. */
import { group, read } from '../commands.ts'
import { toTime } from '../tables.ts'

const toMebibytes = (bytes: number | null) => (bytes === null ? null : (bytes / 2 ** 20).toFixed(1))

const status = read(
  'status',
  'the files of NETWORK_DATA as the console reads them: what they give, their age, faults',
  '/network',
  {
    columns: ({ data }) => [
      ['FILE', 'file'],
      ['STATE', 'state'],
      ['GIVES', ({ gives }) => gives.join(' ')],
      ['NETWORKS', 'networks'],
      ['MIB', ({ bytes }) => toMebibytes(bytes)],
      ['BUILT', ({ built_at: at }) => toTime(at)],
      ...(data.some(({ fault }) => fault !== null) ? [['FAULT', 'fault'] as const] : []),
    ],
    note: ({ is_on: isOn, data }) => {
      if (!isOn) return 'Network data is off: NETWORK_DATA names no folder.'
      return data.length === 0 ? 'The folder has no file of network data.' : ''
    },
  },
)

export const network = group('network', 'network data: countries, operators, hosting, VPN, Tor', [
  status,
])
