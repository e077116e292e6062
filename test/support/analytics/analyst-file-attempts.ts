/** Attempts of an analyst to read a file of the machine by the function `file`. */
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

/** Every spelling of its name, and ways to hide it from a parser. */
export const fileSpellings: Attempt[] = [
  ['a name with a quote before it', "select 1 as `'`, file('/etc/passwd') as `x'`", denied],
  ['a name with a quote, doubled', "select 1 as `''`, file('/etc/passwd') as `x''`", denied],
  ['a name with a double quote', 'select 1 as `"`, file(\'/etc/passwd\') as `x"`', denied],
  ['a name with a back quote', 'select 1 as "`", file(\'/etc/passwd\') as "x`"', denied],
  ['a name with an escaped quote', "select 1 as `\\'`, file('/etc/passwd') as `x`", denied],
  ['a name with a comment in it', "select 1 as `/*`, file('/etc/passwd') as `*/`", denied],
  ['a string with a comment in it', "select '/*', file('/etc/passwd'), '*/'", denied],
  ['a comment with a quote in it', "select 1 /* ' */, file('/etc/passwd') /* ' */", denied],
  ['a line comment with a quote', "select 1 -- '\n, file('/etc/passwd') -- '", denied],
  ['a comment of another kind', "select 1 #! '\n, file('/etc/passwd') #! '", denied],
  ['a comment in a comment', "select 1 /* /* ' */ */, file('/etc/passwd')", denied],
  ['a heredoc with a quote', "select $$'$$, file('/etc/passwd'), $$'$$", denied],
  ['a heredoc with a tag', "select $a$'$$$a$, file('/etc/passwd')", denied],
  ['a heredoc as the path', 'select file($$/etc/passwd$$)', denied],
  ['a string in hexadecimal', "select file(x'2F6574632F706173737764')", denied],
  ['a string that ends in a backslash', "select '\\\\', file('/etc/passwd') as `'`", denied],
  ['typographic quotes', 'select “file”(‘/etc/passwd’)', denied],
  ['typographic quotes of a string', "select ‘'’, file('/etc/passwd'), ‘'’", denied],
  ['upper case', "select FILE('/etc/passwd')", denied],
  ['an escape in octal', "select `fil\\145`('/etc/passwd')", denied],
  ['a name of its letters in Cyrillic', "select filе('/etc/passwd')", 'SYNTAX_ERROR'],
  ['a blank of another width', "select file\u00a0('/etc/passwd')", denied],
  ['a blank without width', "select fi\u200ble('/etc/passwd')", 'SYNTAX_ERROR'],
  ['a zero byte before it', "select 1, \u0000 file('/etc/passwd')", 'SYNTAX_ERROR'],
  ['a zero byte in a string', "select '\u0000', file('/etc/passwd')", denied],
].map(([what, query, gets]) => ({ what: what!, query: query!, gets: gets! }))

/** Every place of a statement that takes an expression; ‹› is the path. */
export const filePlaces: Attempt[] = [
  'select 1 where file(‹›) != $$$$',
  'select 1 from numbers(1) prewhere 1 where not empty(file(‹›))',
  'select count() from numbers(1) group by file(‹›)',
  'select 1 from numbers(1) order by file(‹›)',
  'select 1 from numbers(2) order by number with fill from length(file(‹›)) to 9',
  'select number from numbers(2) order by number with fill interpolate (number as length(file(‹›)))',
  'select count() having length(file(‹›)) > 0',
  'select number from numbers(9) limit length(file(‹›))',
  'select number from numbers(9) limit 1 offset length(file(‹›))',
  'select number from numbers(9) limit 1 by file(‹›)',
  'select row_number() over (partition by file(‹›)) from numbers(2)',
  'select row_number() over w from numbers(2) window w as (order by file(‹›))',
  'select sum(number) over (rows between length(file(‹›)) preceding and current row) from numbers(2)',
  'select row_number() over () as r from numbers(2) qualify length(file(‹›)) > r',
  'select sum(number) filter (where length(file(‹›)) > 0) from numbers(2)',
  'select sumIf(number, length(file(‹›)) > 0) from numbers(2)',
  'with file(‹›) as f select f',
  'with f as (select file(‹›) as x) select x from f',
  'with (select file(‹›)) as f select f',
  'with x -> file(x) as f select f(‹›)',
  'with recursive r as (select file(‹›) as f union all select f from r where 0) select * from r',
  'select * from (select file(‹›))',
  'select * from view(select file(‹›))',
  'select (select file(‹›))',
  'select 1 in (select file(‹›))',
  'select 1 union all select file(‹›)',
  'select 1 intersect select file(‹›)',
  'select 1 from numbers(1) a join numbers(1) b on length(file(‹›)) = a.number',
  'select x from numbers(1) array join [file(‹›)] as x',
  'select arrayMap(x -> file(x), [‹›])',
  'select arrayMap((x) -> (y -> file(y))(x), [‹›])',
  'select arrayFilter(file, [‹›])',
  'select [‹›].map(file)',
  'select * apply(x -> file(x)) from (select ‹›)',
  "select columns('a') apply file from (select ‹› as a)",
  'select * replace (file(a) as a) from (select ‹› as a)',
  'select case when 1 then file(‹›) end',
  'select if(1, file(‹›), 0)',
  'select file(‹›)::String',
  'select cast(file(‹›) as String)',
  'select extract(file(‹›), $$root.*$$)',
  'select tuple(file(‹›)).1',
  "select interval length(file(‹›)) day + toDate('2026-01-01')",
  'select count() from numbers(length(file(‹›)))',
  'select count() from values((file(‹›)))',
  'select * from user_devices_as_of(as_of = file(‹›))',
  'select throwIf(1, file(‹›))',
  'select toUInt64(file(‹›))',
  'select file(‹›) format JSON',
  'describe (select file(‹›))',
  'show tables where file(‹›) != $$$$',
  'show databases where file(‹›) != $$$$',
  'show columns from events where file(‹›) != $$$$',
  'show functions where file(‹›) != $$$$',
  'explain select file(‹›)',
  'explain syntax select file(‹›)',
  'explain query tree select file(‹›)',
  "select * from viewExplain('EXPLAIN', '', (select file(‹›)))",
  "select * from format('JSONEachRow', 'a String, b String default file(''/etc/passwd'')', '{}')",
  "select * from generateRandom('a String default file(''/etc/passwd'')') limit 1",
  "select * from eval('select file(''/etc/passwd'')')",
  "select formatQuery('select file(1)')",
  'insert into function null($$a String$$) select file(‹›)',
  'create temporary table t as select file(‹›)',
].map((text) => ({ what: text, query: text.replaceAll('‹›', "'/etc/passwd'"), gets: denied }))

/** SQL in a string literal, which is never executed. */
export const filesInStrings: Attempt[] = [
  {
    what: 'a default in the structure of values()',
    query: "select * from values('a String, b String default file(''/etc/passwd'')', ('x'))",
    gets: 'BAD_ARGUMENTS',
  },
  {
    what: 'EXECUTE IMMEDIATE',
    query: "execute immediate 'select file(''/etc/passwd'')'",
    gets: 'SYNTAX_ERROR',
  },
]
