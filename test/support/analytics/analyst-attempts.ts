/**
 * An attempt of tenant acme's analyst to break out: its goal, its query, and the required result:
 * an error's name, or an answer without data of other tenants.
 */
export type Attempt = {
  what: string
  query: string
  /** URL parameters. */
  params?: Record<string, string>
  headers?: Record<string, string>
  /** A user other than the analyst, or another password. */
  user?: string
  password?: string
  method?: string
  path?: string
  /** The name of an error, or the exact answer. */
  gets: string
}

const denied = 'ACCESS_DENIED'
const readonly = 'READONLY'
const beyond = 'SETTING_CONSTRAINT_VIOLATION'
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
  'event_reasons',
  'signals',
  'typed_events',
  'signal_share',
  'deliveries',
  'reconciliation',
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
    'the same through reconciliation',
    "select count() from reconciliation where throwIf(tenant_id != 'acme') = 0",
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
  [
    'joinGet',
    "select joinGet('device_intelligence.telemetry', 'body', 1)",
    'ILLEGAL_TYPE_OF_ARGUMENT',
  ],
  ['dictGet', "select dictGet('device_intelligence.telemetry', 'body', 1)", 'BAD_ARGUMENTS'],
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
  ['a file as a table', 'select * from default.`/etc/passwd`', denied],
  ['a file as a string', "select * from '/etc/passwd'", 'UNKNOWN_TABLE'],
  ['a function of a language model', "select aiGenerate('a', 'b')", 'SUPPORT_IS_DISABLED'],
  ['remote()', "select * from remote('127.0.0.1', 'device_intelligence', 'telemetry')", denied],
  [
    'cluster()',
    "select * from cluster('default', 'device_intelligence', 'telemetry')",
    'CLUSTER_DOESNT_EXIST',
  ],
  [
    'clusterAllReplicas()',
    "select * from clusterAllReplicas('default', device_intelligence.telemetry)",
    'CLUSTER_DOESNT_EXIST',
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
  ['addresses of the program', 'select addressToLine(1)', denied],
].map(toAttempt)

const systemTables: Attempt[] = [
  ...[
    'processes',
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
    "select count() from system.tables where lower(database) not in ('analytics', 'system', 'information_schema')",
    '0',
  ],
  [
    'names in system.columns',
    "select count() from system.columns where lower(database) not in ('analytics', 'system', 'information_schema')",
    '0',
  ],
  [
    'names in system.databases',
    "select groupArray(name) from system.databases where lower(name) != 'information_schema'",
    "['analytics','system']",
  ],
  ['parts in system.parts', 'select count() from system.parts', '0'],
  [
    'names in information_schema',
    "select count() from information_schema.tables where table_schema = 'device_intelligence' or table_name = 'telemetry'",
    '0',
  ],
  [
    'numbers of rows in information_schema',
    'select count() from information_schema.tables where table_rows is not null',
    '0',
  ],
  [
    'names in system.completions',
    "select count() from system.completions where word = 'telemetry' or belongs = 'telemetry'",
    '0',
  ],
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
  ['SET', 'set max_memory_usage = 0', readonly],
  ['SET of nothing forbidden', 'set join_use_nulls = 1', ''],
  ['USE', 'use device_intelligence', denied],
  ['KILL QUERY', 'kill query where 1', denied],
  ['KILL MUTATION', 'kill mutation where 1', denied],
  ['OPTIMIZE', 'optimize table device_intelligence.telemetry final', denied],
  ['SYSTEM SHUTDOWN', 'system shutdown', denied],
  ['SYSTEM RELOAD CONFIG', 'system reload config', 'UNSUPPORTED_METHOD'],
  ['SYSTEM STOP MERGES', 'system stop merges device_intelligence.telemetry', denied],
  // It stops merges that the user may stop, which are none: another test checks that.
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
  ['SETTINGS memory', 'select 1 settings max_memory_usage = 0', readonly],
  ['readonly by the address', 'select 1', readonly, { readonly: '0' }],
  ['memory by the address', 'select 1', readonly, { max_memory_usage: '0' }],
  ['a workload by the address', 'select 1', readonly, { workload: 'all' }],
  ['a header setting', 'select 1', readonly, { allow_get_client_http_header: '1' }],
  ['a schema file by the address', 'select 1', readonly, { format_schema: '/etc/passwd:a' }],
  ['a profile without limits', "select getSetting('readonly')", '1', { profile: 'default' }],
  ['more time', 'select 1', beyond, { max_execution_time: '61' }],
  ['no end', 'select 1', beyond, { max_execution_time: '0' }],
  ['more threads', 'select 1', beyond, { max_threads: '65' }],
  ['more rows', 'select 1', beyond, { max_result_rows: '0' }],
  ['a role', 'select 1', 'UNKNOWN_ROLE', { role: 'admin' }],
  [
    'the headers of the request',
    "select getClientHTTPHeader('X-Analyst-Tenant')",
    'FUNCTION_NOT_ALLOWED',
  ],
  [
    'a memory bomb',
    'select length(groupArray(repeat(toString(number), 1000))) from numbers(10000000)',
    'MEMORY_LIMIT_EXCEEDED',
  ],
  ['a string of gigabytes', "select length(repeat('x', 5000000000))", 'TOO_LARGE_STRING_SIZE'],
  ['an array of gigabytes', 'select length(range(5000000000))', 'ARGUMENT_OUT_OF_BOUND'],
  ['too many rows', 'select number from numbers(1000001)', 'TOO_MANY_ROWS_OR_BYTES'],
  [
    'too many bytes',
    "select materialize(repeat('x', 1000)) from numbers(300000)",
    'TOO_MANY_ROWS_OR_BYTES',
  ],
  ['too many rows read', 'select sum(number) from numbers(10000000000)', 'TOO_MANY_ROWS'],
  ['sleepEachRow', 'select sleepEachRow(1) from numbers(100)', 'TOO_SLOW'],
  ['sleep', 'select sleep(3)', 'TOO_SLOW'],
  ['a query larger than is read', `select '${'x'.repeat(300_000)}'`, 'SYNTAX_ERROR'],
  ['deep nesting', `select ${'('.repeat(3_000)}1${')'.repeat(3_000)}`, 'TOO_DEEP_RECURSION'],
].map(toAttempt)

/** At the local stack's address, which signs an analyst in. */
export const identityAttempts: Attempt[] = [
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
]

/** All others, by their goal. */
export const attempts: Record<string, Attempt[]> = {
  'rows of other tenants': [...foreignRows, ...elsewhere],
  'internal tables': internalTables,
  'the machine and the network': outside,

  'what the server knows': systemTables,
  changes,
  'limits and settings': limits,
}

function toAttempt(
  row:
    | readonly [string, string, string, Record<string, string>?]
    | (string | Record<string, string>)[],
): Attempt {
  const [what, query, gets, params] = row as [string, string, string, Record<string, string>?]
  return { what, query, gets, ...(params === undefined ? {} : { params }) }
}
