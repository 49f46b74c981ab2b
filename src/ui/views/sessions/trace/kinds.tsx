import { plural } from '../../../../lib/browser.ts';
import { wordsOf } from '../../chat/data/call-words.ts';
import type { Span, SpanKind } from './model.ts';
import { isGroup, isRound } from './tree.ts';

/** The words for a bar. */
export const kindWords: Readonly<Record<SpanKind, string>> = {
  turn: 'Turn',
  round: 'Round',
  calls: 'Calls',
  request: 'Request',
  thinking: 'Thinking',
  response: 'Response',
  tool: 'Tool',
  approval: 'Approval',
  moment: 'Event',
};

const firstLine = (text: string): string => text.trim().split('\n', 1)[0] ?? '';

/** Maximum number of calls named in the row of a round. */
const namedCalls = 2;

/** Label of a call, as in its conversation. Completes truncated JSON arguments first. */
function callWords({ tool = '', text }: Span): { readonly verb: string; readonly target: string } {
  if (!text.startsWith('{')) return { ...wordsOf({ tool, argumentsText: '' }), target: text };
  const { verb, target } = wordsOf({ tool, argumentsText: text });
  const whole = target || wordsOf({ tool, argumentsText: `${text}"}` }).target;
  return { verb, target: whole || text.replace(/^\{"\w+":\s*"?|"?\}$/g, '') };
}

/** Text after the name of a row: the target of a call as in its conversation, the calls of a round, or the text of the row. */
export function detailOf(span: Span): string {
  if (span.kind === 'tool') return callWords(span).target || span.outcome;
  if (isRound(span)) {
    const calls = span.children.filter(({ kind }) => kind === 'tool');
    const named = calls.slice(0, namedCalls).map((call) => `${nameOf(call)} ${callWords(call).target}`);
    const more = calls.length - named.length;
    return calls.length === 0
      ? ''
      : `→ ${named.join(', ')}${more > 0 ? ` and ${more} ${plural(more, 'call')} more` : ''}`;
  }
  return span.text || span.outcome;
}

/** Name of a row. A turn is named by the first line of its prompt, if it was recorded. */
export function nameOf(span: Span): string {
  if (isRound(span)) return `Round ${span.number}`;
  if (isGroup(span)) return `${span.children.length} × ${callWords(span).verb}`;
  if (span.kind === 'tool') return callWords(span).verb || 'Tool';
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
