import { wordsOf } from '../../chat/data/call-words.ts';
import type { Span, SpanKind } from './model.ts';

/** The words for a bar. */
export const kindWords: Readonly<Record<SpanKind, string>> = {
  turn: 'Turn',
  request: 'Request',
  thinking: 'Thinking',
  response: 'Response',
  tool: 'Tool',
  approval: 'Approval',
  moment: 'Event',
};

const firstLine = (text: string): string => text.trim().split('\n', 1)[0] ?? '';

/** Words behind the name of a row: the target of a call as in its conversation, else its text. */
export function detailOf({ kind, tool = '', text, outcome }: Span): string {
  if (kind !== 'tool' || !text.startsWith('{')) return text || outcome;
  // Shortened arguments cannot be parsed.
  return wordsOf({ tool, argumentsText: text }).target || text.replace(/^\{"\w+":\s*"?|"?\}$/g, '');
}

/** Name of a row. A turn is named by the first line of its prompt, if it was recorded. */
export function nameOf(span: Span): string {
  if (span.kind === 'tool') return span.tool ?? 'Tool';
  if (span.kind === 'approval') return span.end === undefined ? 'Waiting for approval' : `Approval: ${span.label}`;
  if (span.kind === 'request') return `Request to ${span.label}`;
  if (span.kind === 'turn') return firstLine(span.text) || span.label;
  return span.kind === 'moment' ? span.label : kindWords[span.kind];
}

/** Small texture of a kind, equal to the texture of its bars, so that kinds differ by more than colour. */
export function KindMark({ span }: { readonly span: Pick<Span, 'kind' | 'state'> }) {
  return <i class={`kind ${span.kind} ${span.state}`} aria-hidden="true" />;
}

/** Legend of the textures. */
export function Legend() {
  return (
    <p class="legend" aria-hidden="true">
      {(['request', 'thinking', 'response', 'tool', 'approval'] as const).map((kind) => (
        <span key={kind}>
          <KindMark span={{ kind, state: 'done' }} /> {kind === 'approval' ? 'waiting for a person' : kind}
        </span>
      ))}
      <span>
        <KindMark span={{ kind: 'tool', state: 'failed' }} /> failed
      </span>
    </p>
  );
}
