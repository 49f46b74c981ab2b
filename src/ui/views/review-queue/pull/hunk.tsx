import type { FindingHunk, ReviewFinding } from '../../../../protocol/index.ts';
import { ColouredLine } from '../../chat/code/coloured.tsx';
import { diffColours } from '../../chat/code/diff-colours.ts';
import type { Stretch } from '../../chat/code/languages.ts';
import type { DiffRow } from '../../chat/data/diff-rows.ts';

type HunkLine = FindingHunk['lines'][number];
type Kind = HunkLine['kind'];

const marks: Readonly<Record<Kind, string>> = { context: '', removed: '−', added: '+' };
const words: Readonly<Record<Kind, string>> = { context: '', removed: 'removed', added: 'added' };

/** The diff around a finding, with line numbers; the lines of the finding are marked. */
export function Hunk({ hunk, finding }: { readonly hunk: FindingHunk; readonly finding: ReviewFinding }) {
  const { path, lines } = hunk;
  const rows = lines.map(rowOf);
  const colours = diffColours([{ kind: 'file', text: path, before: null, after: null }, ...rows]);
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
          {lines.map((line, index) => (
            <Line
              key={`${line.oldLine}:${line.newLine}`}
              line={line}
              colours={rows[index] && colours.get(rows[index])}
              isAbout={isAbout(line, finding)}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}

const rowOf = ({ kind, text, oldLine, newLine }: HunkLine): DiffRow => ({
  kind: kind === 'context' ? 'same' : kind,
  text,
  before: oldLine ?? null,
  after: newLine ?? null,
});

interface LineProps {
  readonly line: HunkLine;
  readonly colours: readonly Stretch[] | undefined;
  readonly isAbout: boolean;
}

function Line({ line: { kind, oldLine, newLine, text }, colours, isAbout }: LineProps) {
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
      <td class="code">{colours ? <ColouredLine line={colours} /> : text}</td>
    </tr>
  );
}

function isAbout({ oldLine, newLine }: HunkLine, { side, line, startLine = line }: ReviewFinding): boolean {
  const number = side === 'LEFT' ? oldLine : newLine;
  return number !== undefined && line !== undefined && startLine !== undefined && number >= startLine && number <= line;
}
