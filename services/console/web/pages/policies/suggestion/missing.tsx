/** A refusal: what is missing for a suggestion, and what to do. */
import { Link } from '@tanstack/react-router'
import { Empty } from '../../../components/states.tsx'
import { useExact } from '../../../components/time/time.tsx'
import { counted } from '../../../components/words.ts'
import { toCount } from './figures.ts'
import type { Report } from './suggestion-run.ts'

export function TooLittle({ tenant, report }: { tenant: string; report: Report }) {
  const exact = useExact()
  const missing = report.refused?.missing ?? []
  const lacks = (kind: string) => missing.some(({ what }) => what.includes(kind))
  return (
    <Empty title="Too little is known to suggest a policy">
      <ul aria-label="What is missing" className="grid gap-1 text-text">
        {missing.map(({ what, have, need }) => (
          <li className="first-letter:uppercase" key={what}>
            {what}: {toCount(have)}, at least {toCount(need)} are needed
          </li>
        ))}
      </ul>
      {report.sessions === 0 ? (
        <p>No session began in this time. Send telemetry first, or choose a longer time.</p>
      ) : (
        <p>
          {counted(report.sessions, 'session')} began in this time; those without a label say
          nothing. {lacks('fraud') && 'Label what turned out to be fraud. '}
          {lacks('legitimate') &&
            'Label some as legitimate too, drawn by chance, so that it is known which signals ' +
              'honest users have. '}
          More days have more labels.
        </p>
      )}
      {(lacks('newer') || lacks('older')) && report.newer_since !== null && (
        <p>
          Weights are learnt from older sessions and tested on newer ones, here those from{' '}
          {exact(report.newer_since)} on: both need fraud and legitimate ones. Labels come late, so
          it may be enough to wait.
        </p>
      )}
      <p>
        Sessions, devices and users are labelled on their pages, by judging alerts, over{' '}
        <code>POST /v1/di/labels</code>, or from a file with <code>di labels import</code>. See the{' '}
        <Link search={{ tenant }} to="/manage/labels">
          labels of this tenant
        </Link>
        .
      </p>
    </Empty>
  )
}
