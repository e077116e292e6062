/** What can be wrong with a suggestion, by kind: what it means, what to do, and where it is seen. */
import type { Suggestion } from './suggestion-run.ts'

type Warning = Suggestion['warnings'][number]

const texts: Record<Warning['kind'], { title: string; advice: string }> = {
  no_better: {
    title: 'Perhaps no better',
    advice: 'Label more sessions, or keep the policy in force.',
  },
  few_newer: {
    title: 'Few newer fraud sessions',
    advice: 'The comparison rests on them: its ranges are wide. Labels come late; suggest again.',
  },
  leak: {
    title: 'The signal may be why there is a label',
    advice:
      'Then it looks surer, or more harmless, than it is, and fraud without it stays unknown. ' +
      'Label sessions drawn by chance before you trust its points.',
  },
  separation: {
    title: 'Only fraud has it',
    advice:
      'Nothing says how many points are enough. Look at some of its sessions that have no label ' +
      'before you trust its points.',
  },
  drift: {
    title: 'The fleet has changed',
    advice:
      'What the older sessions teach about it may no longer hold. Find out why it became more or ' +
      'less frequent, such as an SDK release, or suggest from fewer days.',
  },
}

const toSentence = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}.`

const kinds = Object.keys(texts) as Warning['kind'][]

export function Warnings({ warnings }: { warnings: Warning[] }) {
  const shown = kinds.filter((kind) => warnings.some((one) => one.kind === kind))
  if (shown.length === 0) return null
  return (
    <section
      aria-label="Warnings"
      className="grid gap-3 rounded-md bg-warn-soft px-3 py-2.5 text-warn"
    >
      {shown.map((kind) => (
        <div className="grid gap-1" key={kind}>
          <h3 className="font-semibold">{texts[kind].title}</h3>
          <ul className="grid gap-0.5">
            {warnings
              .filter((one) => one.kind === kind)
              .map(({ feature, detail }) => (
                <li className="wrap-anywhere" key={feature ?? ''}>
                  {feature === null ? (
                    toSentence(detail)
                  ) : (
                    <>
                      <code className="font-mono text-sm">{feature}</code>: {detail}.
                    </>
                  )}
                </li>
              ))}
          </ul>
          <p className="text-sm">{texts[kind].advice}</p>
        </div>
      ))}
    </section>
  )
}
