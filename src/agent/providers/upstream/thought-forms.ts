/** A form in which model servers without a reasoning parser send thoughts as text. */
export interface ThoughtForm {
  readonly open: string;
  /** Any of these ends the thoughts. */
  readonly close: readonly string[];
}

/** Names of the tags, as chat templates and models write them. */
const names = ['think', 'thinking', 'thought', 'thoughts', 'reasoning', 'seed:think'];

/** Ends of thoughts in tags; their beginning may be missing, because the chat template has written it into the prompt. */
const tagged: readonly ThoughtForm[] = names.map((name) => ({ open: `<${name}>`, close: [`</${name}>`] }));

/** Forms whose beginning may be missing: Qwen, DeepSeek, GLM, MiniMax, Seed, Mistral, Kimi-VL, OpenThinker, Cohere. */
const closable: readonly ThoughtForm[] = [
  ...tagged,
  { open: '[THINK]', close: ['[/THINK]'] },
  { open: '◁think▷', close: ['◁/think▷'] },
  { open: '<|begin_of_thought|>', close: ['<|end_of_thought|>'] },
  { open: '<|START_THINKING|>', close: ['<|END_THINKING|>'] },
  { open: '<|inner_prefix|>', close: ['<|inner_suffix|>'] },
];

/** Ends of a message or channel of gpt-oss. */
const harmonyEnds = ['<|end|>', '<|start|>assistant<|channel|>final<|message|>', '<|channel|>final<|message|>'];

export const thoughtForms: readonly ThoughtForm[] = [
  ...closable,
  { open: '<|channel|>analysis<|message|>', close: harmonyEnds },
  { open: '<|start|>assistant<|channel|>analysis<|message|>', close: harmonyEnds },
  // Gemma.
  { open: '<|channel>thought\n', close: ['<channel|>'] },
];

/** Marks before an answer, without meaning. */
export const answerMarks: readonly string[] = [
  '<|start|>assistant<|channel|>final<|message|>',
  '<|channel|>final<|message|>',
  '<|START_RESPONSE|>',
  '<|begin_of_solution|>',
];

/** Marks at the end of an answer, without meaning. */
export const endMarks: readonly string[] = ['<|return|>', '<|end|>', '<|END_RESPONSE|>', '<|end_of_solution|>'];

/** Whether a text holds the first character of a mark; most texts hold none. */
export const mayHoldMark = (text: string): boolean => /[<[◁]/.test(text);

/** Ends of thoughts that had no beginning. */
export const loneCloses: readonly string[] = closable.flatMap(({ close }) => close);
