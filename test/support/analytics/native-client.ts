/**
 * Real clients of ClickHouse's native protocol: the Python driver and `clickhouse-client`, from the
 * machine or from Debian.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import type { CreatedAnalyst } from '../../../services/console/analytics/manage-analysts.ts'
import { findDebianProgram } from '../servers/debian-program.ts'

const driverPackages = {
  bookworm: [
    ...['python3-clickhouse-driver', 'python3-tz', 'python3-tzlocal'],
    'python3-pytz-deprecation-shim',
  ],
  trixie: ['python3-clickhouse-driver', 'python3-tz', 'python3-tzlocal'],
}

const clientPackages = {
  bookworm: [
    ...['clickhouse-client', 'clickhouse-common', 'libjemalloc2', 'libcapnp-0.9.2', 'libfarmhash0'],
    ...['libmetrohash1', 'libcpuinfo0', 'libmariadb3', 'libpcre3', 'libltdl7', 'libodbc2'],
    ...['libpoconet80', 'libpocofoundation80', 'libpocoutil80', 'libpocoxml80', 'libpocojson80'],
    ...['libpocodata80', 'libpococrypto80', 'libpoconetssl80', 'libpocomongodb80'],
    ...['libpocodataodbc80', 'libre2-9', 'libdouble-conversion3', 'libcctz2', 'librdkafka1'],
    ...['libboost-program-options1.74.0', 'libboost-filesystem1.74.0'],
  ],
}

export type NativeQuery = {
  query: string
  user?: string
  password?: string
  settings?: Record<string, string>
  /** Cancels the query after this time. */
  cancelAfterMs?: number
  /** Further arguments of the driver's `execute`. */
  more?: Record<string, unknown>
}

/** Rows as tab-separated text, or the code of the error as `Code 62`. */
export type NativeOutcome = { got: string; text: string }

const maxBuffer = 256 * 1024 * 1024

const script = `
import json, sys, threading
from clickhouse_driver import Client
from clickhouse_driver.errors import ServerException
about = json.load(sys.stdin)
for one in about['queries']:
    client = Client(about['host'], port=about['port'], user=one.get('user', about['user']),
                    password=one.get('password', about['password']), send_receive_timeout=60)
    if 'cancelAfterMs' in one:
        threading.Timer(one['cancelAfterMs'] / 1000, lambda: client.connection.send_cancel()).start()
    try:
        rows = client.execute(one['query'], settings=one.get('settings'), **one.get('more', {}))
        rows = rows if isinstance(rows, list) else []
        text = '\\n'.join('\\t'.join(str(value) for value in row) for row in rows)
        found = {'got': text[:1000], 'text': text[-100000:]}
    except ServerException as error:
        found = {'got': 'Code %d' % error.code, 'text': str(error)}
    except Exception as error:
        found = {'got': type(error).__name__, 'text': str(error)}
    client.disconnect()
    print(json.dumps(found))
`

/** Runs queries one after another, each over a connection of its own, by the Python driver. */
export async function runByDriver(
  native: string,
  as: Pick<CreatedAnalyst, 'user' | 'password'>,
  queries: readonly NativeQuery[],
): Promise<NativeOutcome[]> {
  const path = 'usr/lib/python3/dist-packages/clickhouse_driver'
  const { file } = await findDebianProgram(path, driverPackages)
  const [host, port] = native.split(':')
  const about = { host, port: Number(port), user: as.user, password: as.password, queries }
  const run = promisify(execFile)('/usr/bin/python3', ['-c', script], {
    env: { PYTHONPATH: dirname(file) },
    maxBuffer,
  })
  run.child.stdin!.end(JSON.stringify(about))
  const { stdout } = await run
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as NativeOutcome)
}

/**
 * Runs one query by `clickhouse-client`. The proxy refuses compression, which Debian's client asks
 * for by default.
 * @returns what it printed
 */
export async function runByClient(
  native: string,
  as: Pick<CreatedAnalyst, 'user' | 'password'>,
  query: string,
  { options = ['--compression', '0'], signal }: { options?: string[]; signal?: AbortSignal } = {},
): Promise<string> {
  const { file, libraries } = await findDebianProgram('usr/bin/clickhouse-client', clientPackages)
  const [host = '', port = ''] = native.split(':')
  const login = ['--host', host, '--port', port, '--user', as.user, '--password', as.password]
  const folders = [libraries, libraries?.replace('/usr/lib/', '/lib/')]
  const env = { LD_LIBRARY_PATH: folders.filter((one) => one && existsSync(one)).join(':') }
  const run = promisify(execFile)(file, [...login, ...options, '--query', query], {
    env,
    maxBuffer,
    ...(signal === undefined ? {} : { signal }),
  })
  return run.then(
    ({ stdout }) => stdout,
    ({ stderr }: { stderr: string }) => stderr,
  )
}
