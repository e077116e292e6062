import { filePlaces, fileSpellings, filesInStrings } from './analyst-file-attempts.ts'

/**
 * What an analyst of tenant acme tries in order to get out: what it wants, how, and what it must
 * get instead: an error's name, or an answer with nothing of anybody else in it.
 */

export type Attempt = {
  what: string
  query: string
  /** In the address. */
  params?: Record<string, string>
  headers?: Record<string, string>
  /** Another user's name than the analyst's own, or another password. */
  user?: string
  password?: string
  method?: string
  path?: string
  /** The name of an error, or the exact answer. */
  gets: string
}

const denied = 'ACCESS_DENIED'
const readonly = 'READONLY'
const unsigned = 'AUTHENTICATION_FAILED'

/** The views with a tenant in every row. */
export const tenantViews = [
  'events',
  'sessions',
  'devices',
  'users',
  'user_devices',
  'alerts',
  'dispositions',
  'reasons',
  'signals',
  'signal_share',
  'deliveries',
  'ledger',
] as const

const foreignRows: Attempt[] = tenantViews.map((view) => ({
  what: `rows of globex in ${view}`,
  query: `select count() from analytics.${view} where tenant_id != 'acme'`,
  gets: '0',
}))

const elsewhere: Attempt[] = [
  [
    'user_devices_as_of',
    "select count() from user_devices_as_of(as_of = '2030-01-01 00:00:00.000') where tenant_id != 'acme'",
    '0',
  ],
  ['or true', "select uniqExact(tenant_id) from events where tenant_id = 'globex' or 1 = 1", '1'],
  [
    'a union of views',
    "select count() from (select tenant_id from events union all select tenant_id from alerts) where tenant_id = 'globex'",
    '0',
  ],
  [
    'a join that meets globex',
    'select count() from events a join devices b on a.tenant_id != b.tenant_id',
    '0',
  ],
  ['a cross join', 'select uniqExact(b.tenant_id) from (select 1) a cross join devices b', '1'],
  [
    'an error that quotes a value',
    "select count() from events where toUInt64(replaceOne(device_id, 'acme-', '')) >= 0",
    '50',
  ],
  [
    'an error that quotes a value, by PREWHERE',
    'select count() from events prewhere toUInt64(device_id) >= 0',
    'ILLEGAL_PREWHERE',
  ],
  [
    'throwIf on a foreign row',
    "select count() from events where throwIf(tenant_id = 'globex', 'seen') = 0",
    '50',
  ],
  [
    'the same through sessions',
    "select count() from sessions where throwIf(startsWith(device_id, 'globex')) = 0",
    '20',
  ],
  [
    'the same through users',
    "select count() from users where throwIf(startsWith(user_id, 'globex')) = 0",
    '5',
  ],
  [
    'the same through alerts',
    "select count() from alerts where throwIf(startsWith(device_id, 'globex')) = 0",
    '5',
  ],
  [
    'the same through ledger',
    "select count() from ledger where throwIf(tenant_id != 'acme') = 0",
    '1',
  ],
  ['division by a foreign row', "select sum(intDiv(1, tenant_id = 'acme')) from events", '50'],
  [
    'another tenant by a parameter',
    'select count() from events where tenant_id = {t:String}',
    '0',
    { param_t: 'globex' },
  ],
  [
    'an identifier by a parameter',
    'select count() from {d:Identifier}.{t:Identifier}',
    denied,
    { param_d: 'device_intelligence', param_t: 'telemetry' },
  ],
  [
    'a parameter that ends its string',
    'select count() from events where tenant_id = {t:String}',
    '0',
    { param_t: "x' or '1'='1" },
  ],
  [
    'a recursive query without end',
    'with recursive r as (select 1 as n union all select n + 1 from r) select count() from r',
    'TOO_DEEP_RECURSION',
  ],
].map(toAttempt)

const internalTables: Attempt[] = [
  ['telemetry', 'select count() from device_intelligence.telemetry', denied],
  ['telemetry, quoted', 'select count() from `device_intelligence`."telemetry"', denied],
  [
    'telemetry by the database of the request',
    'select count() from telemetry',
    denied,
    { database: 'device_intelligence' },
  ],
  [
    'telemetry behind a comment',
    'select count() from device_intelligence/* */./**/telemetry -- events',
    denied,
  ],
  [
    'telemetry behind a common table',
    'with t as (select * from device_intelligence.telemetry) select count() from t',
    denied,
  ],
  [
    'telemetry in a scalar subquery',
    'select (select any(body) from device_intelligence.telemetry)',
    denied,
  ],
  [
    'telemetry in IN',
    "select 1 where 'x' in (select device_id from device_intelligence.telemetry)",
    denied,
  ],
  ['a table as a set', "select 1 where 'x' in device_intelligence.telemetry", denied],
  ['activity', 'select * from device_intelligence.activity', denied],
  ['alerts_replica', 'select * from device_intelligence.alerts_replica', denied],
  ['schema_migrations', 'select * from device_intelligence.schema_migrations', denied],
  ['an inner table of a view', 'select * from device_intelligence.activity_of_telemetry', denied],
  ['merge()', "select * from merge('device_intelligence', '.*')", 'CANNOT_EXTRACT_TABLE_STRUCTURE'],
  [
    'merge() over everything',
    "select count() from merge(REGEXP('.*'), 'telemetry')",
    'CANNOT_EXTRACT_TABLE_STRUCTURE',
  ],
  ['view()', 'select * from view(select * from device_intelligence.telemetry)', denied],
  [
    'viewExplain()',
    "select * from viewExplain('EXPLAIN', '', (select * from device_intelligence.telemetry))",
    denied,
  ],
  ['loop()', 'select * from loop(device_intelligence.telemetry) limit 1', denied],
  ['mergeTreeIndex()', "select * from mergeTreeIndex('device_intelligence', 'telemetry')", denied],
  [
    'mergeTreeParts()',
    "select * from mergeTreeParts('device_intelligence', 'telemetry')",
    'UNKNOWN_FUNCTION',
  ],
  ['joinGet', "select joinGet('device_intelligence.telemetry', 'body', 1)", denied],
  ['dictGet', "select dictGet('device_intelligence.telemetry', 'body', 1)", denied],
  [
    'hasColumnInTable',
    "select hasColumnInTable('device_intelligence', 'telemetry', 'body')",
    denied,
  ],
  ['DESCRIBE', 'describe device_intelligence.telemetry', denied],
  ['SHOW CREATE', 'show create table device_intelligence.telemetry', denied],
  ['SHOW TABLES', 'show tables from device_intelligence', ''],
  ['SHOW COLUMNS', 'show columns from telemetry from device_intelligence', ''],
  ['EXISTS', 'exists table device_intelligence.telemetry', denied],
  ['CHECK TABLE', 'check table device_intelligence.telemetry', denied],
  ['EXPLAIN PLAN', 'explain plan select * from device_intelligence.telemetry', denied],
  ['EXPLAIN ESTIMATE', 'explain estimate select * from device_intelligence.telemetry', denied],
  ['EXPLAIN PIPELINE', 'explain pipeline select * from device_intelligence.telemetry', denied],
  [
    'a temporary view of it',
    'create temporary view v as select * from device_intelligence.telemetry',
    denied,
  ],
].map(toAttempt)

const outside: Attempt[] = [
  ['url()', "select * from url('http://127.0.0.1:1/', 'TSV', 'a String')", denied],
  ['file()', "select * from file('/etc/passwd', 'LineAsString')", denied],
  ['the function file', "select file('/etc/passwd')", denied],
  ['file, quoted with an escape', "select `f\\x69le`('/etc/passwd')", denied],
  ['file, quoted otherwise', 'select "fil\\x65"(\'/etc/passwd\')', denied],
  ['file, behind a comment', "select file/**/('/etc/passwd')", denied],
  ['file, by its name alone', "select arrayMap(file, ['/etc/passwd'])", denied],
  ['file, applied to a column', "select * apply(file) from (select '/etc/passwd')", denied],
  [
    'file, by a parameter',
    "select arrayMap({f:Identifier}, ['/etc/passwd'])",
    denied,
    { param_f: 'file' },
  ],
  [
    'file, by an escaped parameter',
    "select arrayMap({f:Identifier}, ['/etc/passwd'])",
    denied,
    { param_f: 'f\\x69le' },
  ],
  ['a file as a table', 'select * from default.`/etc/passwd`', denied],
  ['a file as a string', "select * from '/etc/passwd'", 'UNKNOWN_TABLE'],
  ['a function of a language model', "select aiGenerate('a', 'b')", denied],
  ['the settings of the server', "select getServerSetting('path')", denied],
  ['remote()', "select * from remote('127.0.0.1', 'device_intelligence', 'telemetry')", denied],
  ['cluster()', "select * from cluster('default', 'device_intelligence', 'telemetry')", denied],
  [
    'clusterAllReplicas()',
    "select * from clusterAllReplicas('default', device_intelligence.telemetry)",
    denied,
  ],
  ['s3()', "select * from s3('http://127.0.0.1:1/a.csv', 'CSV', 'a String')", denied],
  ['gcs()', "select * from gcs('http://127.0.0.1:1/a.csv', 'CSV', 'a String')", denied],
  [
    'azureBlobStorage()',
    "select * from azureBlobStorage('http://127.0.0.1:1/', 'c', 'b', 'n', 'aaaa', 'CSV', 'auto', 'a String')",
    denied,
  ],
  ['hdfs()', "select * from hdfs('hdfs://127.0.0.1:1/a', 'CSV', 'a String')", denied],
  ['postgresql()', "select * from postgresql('127.0.0.1:1', 'd', 't', 'u', 'p')", denied],
  ['mysql()', "select * from mysql('127.0.0.1:1', 'd', 't', 'u', 'p')", denied],
  ['mongodb()', "select * from mongodb('127.0.0.1:1', 'd', 't', 'u', 'p', 'a String')", denied],
  ['redis()', "select * from redis('127.0.0.1:1', 'k', 'k String')", denied],
  ['sqlite()', "select * from sqlite('/etc/passwd', 't')", denied],
  ['jdbc()', "select * from jdbc('x', 'y', 'z')", denied],
  ['odbc()', "select * from odbc('x', 'y', 'z')", denied],
  ['executable()', "select * from executable('id', 'TSV', 'a String')", denied],
  ['python()', "select * from python('os')", 'UNKNOWN_FUNCTION'],
  ['dictionary()', "select * from dictionary('device_intelligence.d')", denied],
  ['iceberg()', "select * from icebergLocal('/etc')", denied],
  ['INTO OUTFILE', "select 1 into outfile '/tmp/x.tsv'", 'INTO_OUTFILE_NOT_ALLOWED'],
  ['FORMAT with a schema file', 'select 1 format Protobuf', 'BAD_ARGUMENTS'],
  ['a schema file by the address', 'select 1', readonly, { format_schema: '/etc/passwd:a' }],
  ['addresses of the program', 'select addressToLine(1)', denied],
].map(toAttempt)

const systemTables: Attempt[] = [
  ...[
    'processes',
    'parts',
    'parts_columns',
    'users',
    'grants',
    'row_policies',
    'roles',
    'quotas',
    'settings_profiles',
    'server_settings',
    'merges',
    'mutations',
    'replicas',
    'disks',
    'named_collections',
    'dictionaries',
    'events',
    'metrics',
    'errors',
    'user_processes',
    'query_cache',
    'stack_trace',
    'macros',
  ].map((table): [string, string, string] => [
    `system.${table}`,
    `select * from system.${table} limit 1`,
    denied,
  ]),
  [
    'names in system.tables',
    "select count() from system.tables where database not in ('analytics', 'system')",
    '0',
  ],
  [
    'names in system.columns',
    "select count() from system.columns where database not in ('analytics', 'system')",
    '0',
  ],
  ['names in system.databases', 'select groupArray(name) from system.databases', "['analytics']"],
  [
    'names in system.completions',
    "select count() from system.completions where word = 'telemetry' or belongs = 'telemetry'",
    '0',
  ],
  ['information_schema', 'select * from information_schema.tables', denied],
].map((one) => toAttempt(one as [string, string, string]))

const changes: Attempt[] = [
  ['INSERT', "insert into device_intelligence.telemetry (tenant_id) values ('acme')", denied],
  ['INSERT into a view', "insert into analytics.events (tenant_id) values ('acme')", denied],
  ['INSERT into a function', "insert into function null('a Int8') values (1)", denied],
  ['ALTER DELETE', 'alter table device_intelligence.telemetry delete where 1', denied],
  ['ALTER of a view', 'alter table analytics.events modify sql security none', denied],
  [
    'ALTER UPDATE',
    "alter table device_intelligence.telemetry update tenant_id = 'acme' where 1",
    denied,
  ],
  ['DELETE', 'delete from device_intelligence.telemetry where 1', denied],
  ['DROP TABLE', 'drop table device_intelligence.telemetry', denied],
  ['DROP VIEW', 'drop view analytics.events', denied],
  ['DROP DATABASE', 'drop database device_intelligence', denied],
  ['TRUNCATE', 'truncate table device_intelligence.telemetry', denied],
  ['RENAME', 'rename table analytics.events to analytics.e', denied],
  ['EXCHANGE', 'exchange tables analytics.events and analytics.alerts', denied],
  ['CREATE TABLE', 'create table analytics.t (a Int8) engine = Memory', denied],
  [
    'CREATE VIEW that reads as another',
    'create view analytics.v definer = default sql security definer as select * from device_intelligence.telemetry',
    denied,
  ],
  ['CREATE DATABASE', 'create database d', denied],
  ['CREATE FUNCTION', 'create function f as (x) -> x', denied],
  [
    'CREATE DICTIONARY',
    'create dictionary analytics.d (a UInt64) primary key a source(null()) layout(flat()) lifetime(1)',
    denied,
  ],
  ['CREATE NAMED COLLECTION', 'create named collection n as a = 1', denied],
  ['CREATE USER', 'create user u', denied],
  ['ALTER USER', "alter user analyst identified by 'x'", denied],
  ['GRANT', 'grant select on *.* to analyst', denied],
  ['DROP ROW POLICY', 'drop row policy p on device_intelligence.telemetry', denied],
  ['SET ROLE', 'set role all', ''],
  ['EXECUTE AS', 'execute as default select 1', 'SUPPORT_IS_DISABLED'],
  ['SET', 'set max_threads = 8', readonly],
  ['SET of nothing forbidden', 'set join_use_nulls = 1', ''],
  ['USE', 'use device_intelligence', denied],
  ['KILL QUERY', 'kill query where 1', denied],
  ['KILL MUTATION', 'kill mutation where 1', denied],
  ['OPTIMIZE', 'optimize table device_intelligence.telemetry final', denied],
  ['SYSTEM SHUTDOWN', 'system shutdown', denied],
  ['SYSTEM RELOAD CONFIG', 'system reload config', 'UNSUPPORTED_METHOD'],
  ['SYSTEM STOP MERGES', 'system stop merges device_intelligence.telemetry', denied],
  // It stops those that the user may stop: none, as another test looks up.
  ['SYSTEM STOP MERGES of all', 'system stop merges', ''],
  ['SYSTEM DROP CACHE', 'system drop mark cache', denied],
  ['SYSTEM FLUSH LOGS', 'system flush logs', denied],
  ['BACKUP', "backup table device_intelligence.telemetry to Disk('default', 'b')", denied],
  ['RESTORE', "restore table device_intelligence.telemetry from Disk('default', 'b')", denied],
  ['DETACH', 'detach table analytics.events', denied],
  ['ATTACH', "attach table analytics.x from '/etc' (a Int8) engine = File(TSV)", denied],
  ['CREATE TEMPORARY TABLE', 'create temporary table t (a Int8)', denied],
  ['two statements', 'select 1; drop view analytics.events', 'SYNTAX_ERROR'],
  ['two statements behind a comment', 'select 1 --\n; drop view analytics.events', 'SYNTAX_ERROR'],
].map(toAttempt)

const limits: Attempt[] = [
  ['SETTINGS readonly', 'select 1 settings readonly = 0', readonly],
  ['SETTINGS in a subquery', 'select * from (select 1 settings max_threads = 8)', readonly],
  ['SETTINGS in view()', 'select * from view(select 1 SeTtInGs max_threads = 8)', readonly],
  ['SETTINGS after a heredoc', 'select * from (select $$a$$settings max_threads = 8)', readonly],
  [
    'SETTINGS after a comment',
    'select * from (select 1 -- system.\nsettings max_threads = 8)',
    readonly,
  ],
  ['SETTINGS after a number', 'select * from (select 1.settings max_threads = 8)', 'SYNTAX_ERROR'],
  [
    'SETTINGS after a table of that name',
    'select * from (select 1 from system.settings settings max_threads = 8)',
    readonly,
  ],
  ['SETTINGS across query and body', 'settings max_threads = 8', readonly, { query: 'select 1' }],
  ['readonly by the address', 'select 1', readonly, { readonly: '0' }],
  ['threads by the address', 'select 1', readonly, { max_threads: '8' }],
  ['memory by the address', 'select 1', readonly, { max_memory_usage: '0' }],
  [
    'more time by the address',
    'select 1',
    'SETTING_CONSTRAINT_VIOLATION',
    { max_execution_time: '3600' },
  ],
  [
    'no end by the address',
    'select 1',
    'SETTING_CONSTRAINT_VIOLATION',
    { max_execution_time: '0' },
  ],
  ['the trace of an error', 'select 1', readonly, { stacktrace: '1' }],
  ['a role', 'select 1', readonly, { role: 'admin' }],
  ['a header setting', 'select 1', readonly, { allow_get_client_http_header: '1' }],
  ['the headers of the request', "select getClientHTTPHeader('X-Analyst-Tenant')", denied],
  [
    'a memory bomb',
    'select length(groupArray(repeat(toString(number), 1000))) from numbers(10000000)',
    'MEMORY_LIMIT_EXCEEDED',
  ],
  ['a string of gigabytes', "select length(repeat('x', 5000000000))", 'TOO_LARGE_STRING_SIZE'],
  ['an array of gigabytes', 'select length(range(5000000000))', 'ARGUMENT_OUT_OF_BOUND'],
  ['an edit distance', "select editDistance(repeat('a', 60000), repeat('b', 60000))", denied],
  [
    'an edit distance by its other name',
    "select levenshteinDistance(repeat('a', 60000), repeat('b', 60000))",
    denied,
  ],
  [
    'an edit distance of arrays',
    'select arrayLevenshteinDistance(range(60000), range(60000))',
    denied,
  ],
  ['a similarity', "select jaroWinklerSimilarity(repeat('a', 60000), repeat('b', 60000))", denied],
  ['too many rows', 'select number from numbers(1000001)', 'TOO_MANY_ROWS_OR_BYTES'],
  ['too many bytes', "select repeat('x', 1000) from numbers(20000)", 'TOO_MANY_ROWS_OR_BYTES'],
  ['too many rows read', 'select sum(number) from numbers(10000000000)', 'TOO_MANY_ROWS'],
  ['sleepEachRow', 'select sleepEachRow(1) from numbers(100)', denied],
  ['sleep', 'select sleep(3)', denied],
  ['a query larger than is read', `select '${'x'.repeat(300_000)}'`, 'SYNTAX_ERROR'],
  ['a query of as many bytes in fewer letters', `select '${'€'.repeat(40_000)}'`, 'SYNTAX_ERROR'],
  ['deep nesting', `select ${'('.repeat(3_000)}1${')'.repeat(3_000)}`, 'TOO_DEEP_RECURSION'],
].map(toAttempt)

const identity: Attempt[] = [
  { what: 'no password', query: 'select 1', password: '', gets: unsigned },
  { what: 'a wrong password', query: 'select 1', password: 'x'.repeat(43), gets: unsigned },
  {
    what: 'the name of another tenant’s analyst',
    query: 'select 1',
    user: 'analyst.globex.own',
    gets: unsigned,
  },
  {
    what: 'a name that there is not',
    query: 'select 1',
    user: 'analyst.acme.nobody',
    gets: unsigned,
  },
  { what: 'the engine’s own analyst', query: 'select 1', user: 'analyst', gets: unsigned },
  { what: 'the service’s user', query: 'select 1', user: 'default', gets: unsigned },
  { what: 'the views’ reader', query: 'select 1', user: 'analytics_reader', gets: unsigned },
  {
    what: 'a name with more in it',
    query: 'select 1',
    user: "analyst.acme.own' or '1'='1",
    gets: unsigned,
  },
  {
    what: 'a name of two tenants',
    query: 'select 1',
    user: 'analyst.acme.own.globex',
    gets: unsigned,
  },
  {
    what: 'the header that names the tenant',
    query: "select count() from events where tenant_id != 'acme'",
    headers: { 'X-Analyst-Tenant': 'globex' },
    gets: '0',
  },
  {
    what: 'the engine’s user in the address',
    query: 'select currentUser()',
    params: { user: 'default', password: '' },
    gets: 'analyst',
  },
  {
    what: 'a header of the engine’s authentication',
    query: 'select currentUser()',
    headers: { 'X-ClickHouse-SSL-Certificate-Auth': 'on' },
    gets: 'analyst',
  },
  {
    what: 'a session that keeps state',
    query: "select getSetting('join_use_nulls')",
    params: { session_id: 'mine' },
    gets: 'false',
  },
  {
    what: 'a database of the request that is not for analysts',
    query: 'show tables',
    params: { database: 'device_intelligence' },
    gets: '',
  },
  {
    what: 'a form that hides the query',
    query: '--b\r\ncontent-disposition: form-data; name="session_id"\r\n\r\nx\r\n--b--',
    headers: { 'Content-Type': 'multipart/form-data; boundary=b' },
    gets: 'BAD_ARGUMENTS',
  },
  {
    what: 'a compressed body',
    query: 'x',
    headers: { 'Content-Encoding': 'gzip' },
    gets: 'BAD_ARGUMENTS',
  },
  {
    what: 'one parameter twice',
    query: 'select 1',
    path: '/?database=analytics&database=device_intelligence',
    gets: 'BAD_ARGUMENTS',
  },
  { what: 'PUT', query: 'select 1', method: 'PUT', gets: 'BAD_ARGUMENTS' },
  { what: 'the engine’s own pages', query: 'select 1', path: '/play', gets: 'BAD_ARGUMENTS' },
  { what: 'the engine’s metrics', query: 'select 1', path: '/metrics', gets: 'BAD_ARGUMENTS' },
]

/** All of them, by what they are after. */
export const attempts: Record<string, Attempt[]> = {
  'rows of other tenants': [...foreignRows, ...elsewhere],
  'internal tables': internalTables,
  'the machine and the network': outside,
  'a file by another spelling': fileSpellings,
  'a file from another place': [...filePlaces, ...filesInStrings],
  'what the server knows': systemTables,
  changes,
  'limits and settings': limits,
  'another identity': identity,
}

function toAttempt(
  row:
    | readonly [string, string, string, Record<string, string>?]
    | (string | Record<string, string>)[],
): Attempt {
  const [what, query, gets, params] = row as [string, string, string, Record<string, string>?]
  return { what, query, gets, ...(params === undefined ? {} : { params }) }
}
