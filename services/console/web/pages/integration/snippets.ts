/**
 * The programs of `services/ingest/examples` with a tenant's values in the place of what they read:
 * the submission from stdin, and the address of ingest from the environment. The HMAC secret stays
 * in the environment.
 */
/// <reference path="../../vite.d.ts" />
import csharp from '../../../../ingest/examples/SendTelemetry.cs?raw'
import java from '../../../../ingest/examples/SendTelemetry.java?raw'
import kotlin from '../../../../ingest/examples/SendTelemetry.kt?raw'
import dart from '../../../../ingest/examples/send_telemetry.dart?raw'
import go from '../../../../ingest/examples/send_telemetry.go?raw'
import php from '../../../../ingest/examples/send_telemetry.php?raw'
import python from '../../../../ingest/examples/send_telemetry.py?raw'
import ruby from '../../../../ingest/examples/send_telemetry.rb?raw'
import swift from '../../../../ingest/examples/send_telemetry.swift?raw'
import { type Quote, quoteDouble, quoteSingle } from './quote.ts'

export type Snippet = { id: string; language: string; code: string }

type Program = {
  id: string
  language: string
  source: string
  quote: Quote
  /** What reads the submission, and the bytes of a literal that take its place. */
  reads: string
  toBytes: (literal: string) => string
  /** What reads the address of ingest. */
  address: string
}

const programs: Program[] = [
  {
    id: 'python',
    language: 'Python',
    source: python,
    quote: quoteDouble(),
    reads: 'sys.stdin.buffer.read()',
    toBytes: (literal) => `${literal}.encode()`,
    address: 'os.environ["INGEST_URL"]',
  },
  {
    id: 'java',
    language: 'Java',
    source: java,
    quote: quoteDouble(),
    reads: 'System.in.readAllBytes()',
    toBytes: (literal) => `${literal}.getBytes(StandardCharsets.UTF_8)`,
    address: 'System.getenv("INGEST_URL")',
  },
  {
    id: 'kotlin',
    language: 'Kotlin',
    source: kotlin,
    quote: quoteDouble({ special: '$' }),
    reads: 'System.`in`.readBytes()',
    toBytes: (literal) => `${literal}.toByteArray()`,
    address: 'System.getenv("INGEST_URL")',
  },
  {
    id: 'swift',
    language: 'Swift',
    source: swift,
    quote: quoteDouble({ toUnicode: (hex) => `\\u{${hex}}` }),
    reads: 'FileHandle.standardInput.readDataToEndOfFile()',
    toBytes: (literal) => `Data(${literal}.utf8)`,
    address: 'environment["INGEST_URL"]!',
  },
  {
    id: 'go',
    language: 'Go',
    source: go,
    quote: quoteDouble(),
    reads: `body, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}`,
    toBytes: (literal) => `body := []byte(${literal})`,
    address: 'os.Getenv("INGEST_URL")',
  },
  {
    id: 'php',
    language: 'PHP',
    source: php,
    quote: quoteSingle,
    reads: 'stream_get_contents(STDIN)',
    toBytes: (literal) => literal,
    address: "getenv('INGEST_URL')",
  },
  {
    id: 'ruby',
    language: 'Ruby',
    source: ruby,
    quote: quoteSingle,
    reads: '$stdin.binmode.read',
    toBytes: (literal) => literal,
    address: "ENV.fetch('INGEST_URL')",
  },
  {
    id: 'csharp',
    language: 'C#',
    source: csharp,
    quote: quoteDouble(),
    reads: `using var stdin = new MemoryStream();
await Console.OpenStandardInput().CopyToAsync(stdin);
var body = stdin.ToArray();`,
    toBytes: (literal) => `var body = Encoding.UTF8.GetBytes(${literal});`,
    address: 'Setting("INGEST_URL")',
  },
  {
    id: 'dart',
    language: 'Dart',
    source: dart,
    quote: quoteDouble({ special: '$' }),
    reads: 'await stdin.expand((chunk) => chunk).toList()',
    toBytes: (literal) => `utf8.encode(${literal})`,
    address: "environment['INGEST_URL']!",
  },
]

/** What the programs are filled in with. */
export type SnippetValues = {
  /** The body to send. */
  body: string
  /** The address of ingest; an empty text leaves it in the environment. */
  ingestUrl: string
}

/** The programs, with values in place. */
export const writeSnippets = (values: SnippetValues): Snippet[] =>
  programs.map((program) => {
    const { id, language } = program
    return { id, language, code: fillIn(program, values) }
  })

function fillIn(program: Program, { body, ingestUrl }: SnippetValues): string {
  const { source, quote, reads, toBytes, address } = program
  return replaceEach(source, [
    [reads, toBytes(quote(body))],
    ['the submission on stdin', 'a submission'],
    ...(ingestUrl === ''
      ? []
      : ([
          [address, quote(ingestUrl)],
          ['HMAC_SECRET, INGEST_URL', 'HMAC_SECRET'],
        ] as const)),
  ])
}

/**
 * Replaces texts of a source, and nothing in what takes their place.
 * @throws Error when a text does not stand in the source exactly once
 */
function replaceEach(source: string, changes: readonly (readonly [string, string])[]): string {
  const places = changes.map(([text, by]) => {
    const start = source.indexOf(text)
    if (start === -1 || source.includes(text, start + 1)) {
      throw new Error(`an example does not have this once: ${text}`)
    }
    return { start, end: start + text.length, by }
  })
  // From the last one on, so that the positions of the others hold.
  return places
    .toSorted((a, b) => b.start - a.start)
    .reduce((code, { start, end, by }) => code.slice(0, start) + by + code.slice(end), source)
}

/** Reads the device of the submission. @param apiUrl an empty text leaves it in the environment */
export const writeReading = (apiUrl: string): string =>
  `curl -sS "${apiUrl || '$API_URL'}/v1/di/devices/${submissionDevice}" -H "Authorization: Bearer $API_KEY"`

const submissionDevice = 'device-1'

/** A small valid submission of a tenant. */
export const writeSubmission = (tenantId: string): string =>
  JSON.stringify({
    tenant_id: tenantId,
    device_id: submissionDevice,
    session_id: 'session-1',
    sdk_meta: { sdk_version: '1.0.0', platform: 'android', batch_type: 'start' },
    scorer: { rasp_score: 0, rasp_action: 'ALLOW', rasp_flags: [] },
    signals: { root: {}, emulator: {}, debugger: {}, tamper: {}, ecosystem: {}, network: {} },
  })
