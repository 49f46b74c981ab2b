import type { FindingHunk, ReviewFinding } from '../../../../protocol/index.ts';

type HunkLine = FindingHunk['lines'][number];
type Kind = HunkLine['kind'];

const marks: Readonly<Record<Kind, string>> = { context: '', removed: '−', added: '+' };
const words: Readonly<Record<Kind, string>> = { context: '', removed: 'removed', added: 'added' };

/** The diff around a finding, with line numbers; the lines of the finding are marked. */
export function Hunk({ hunk, finding }: { readonly hunk: FindingHunk; readonly finding: ReviewFinding }) {
  const { path, lines } = hunk;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
    <section class="hunk" aria-label={`Diff of ${path}: ${finding.title}`} tabIndex={0}>
      <table>
        <thead class="unseen">
          <tr>
            <th scope="col">Line before</th>
            <th scope="col">Line now</th>
            <th scope="col">Change</th>
            <th scope="col">Text</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <Line key={`${line.oldLine}:${line.newLine}`} line={line} isAbout={isAbout(line, finding)} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Line({
  line: { kind, oldLine, newLine, text },
  isAbout,
}: {
  readonly line: HunkLine;
  readonly isAbout: boolean;
}) {
  const said = [words[kind], isAbout ? 'the finding is about it' : ''].filter((word) => word !== '').join(', ');
  return (
    <tr class={`${kind} ${isAbout ? 'about' : ''}`}>
      <td class="number">{oldLine}</td>
      <td class="number">{newLine}</td>
      <td class="mark">
        <span aria-hidden="true">
          {isAbout ? '▸' : ' '}
          {marks[kind]}
        </span>
        <span class="unseen">{said}</span>
      </td>
      <td class="code">{text}</td>
    </tr>
  );
}

function isAbout({ oldLine, newLine }: HunkLine, { side, line, startLine = line }: ReviewFinding): boolean {
  const number = side === 'LEFT' ? oldLine : newLine;
  return number !== undefined && line !== undefined && startLine !== undefined && number >= startLine && number <= line;
}
