/** Scripts of the fakes: the last text of the user is the script of the model, so that any client can drive it. */

export const toolName = 'lookup';
/** JSON Schema of the tool's arguments. */
export const toolSchema = {
  type: 'object',
  properties: { key: { type: 'string' }, depth: { type: 'number' } },
  required: ['key'],
  additionalProperties: false,
} as const;
export const lookUp = (key: string): string => `value of ${key}`;

/** One step of the model. */
export type Step =
  | { readonly does: 'call'; readonly keys: readonly string[]; readonly round: number }
  | { readonly does: 'say'; readonly text: string }
  | { readonly does: 'refuse' }
  | { readonly does: 'runOut' }
  | { readonly does: 'filter' };

export interface Situation {
  /** Last text of the user. */
  readonly text: string;
  /** Rounds of calls since that text. */
  readonly rounds: number;
  /** Results since that text, in order. */
  readonly results: readonly string[];
  /** Pictures that the user has sent, as media type and size in base64. */
  readonly pictures: readonly string[];
  /** Whether the request asks for JSON of a schema. */
  readonly wantsJson: boolean;
}

/** The next step: `tool loop N`, `parallel`, `image`, `refusal`, `length`, `filter`, `json`, else an echo. */
export function stepOf({ text, rounds, results, pictures, wantsJson }: Situation): Step {
  const loop = /tool loop (\d+)/.exec(text);
  if (loop) {
    if (rounds < Number(loop[1])) return { does: 'call', keys: [`k${rounds}`], round: rounds };
    return { does: 'say', text: `Found: ${results.join(', ')}` };
  }
  if (text.includes('parallel')) {
    if (rounds === 0) return { does: 'call', keys: ['left', 'right'], round: 0 };
    return { does: 'say', text: `Found: ${results.join(', ')}` };
  }
  if (text.includes('image')) return { does: 'say', text: `I see ${pictures.join(', ') || 'nothing'}` };
  if (text.includes('refusal')) return { does: 'refuse' };
  if (text.includes('length')) return { does: 'runOut' };
  if (text.includes('filter')) return { does: 'filter' };
  if (text.includes('json')) return { does: 'say', text: wantsJson ? '{"answer":42}' : 'no format was asked for' };
  return { does: 'say', text: `You said: ${text}` };
}

/** Media type and length of a picture, as the fakes describe it. */
export const described = (mediaType: string, base64: string): string => `${mediaType} of ${base64.length}`;

export const thoughtOf = (round: number): string => `thinking about round ${round}`;
export const inputTokens = (bytes: number): number => Math.ceil(bytes / 4);
