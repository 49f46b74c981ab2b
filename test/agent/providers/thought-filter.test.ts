import fc from 'fast-check';
import t from 'tap';
import { type Sorted, ThoughtFilter } from '../../../src/agent/providers/upstream/thought-filter.ts';
import { thoughtForms } from '../../../src/agent/providers/upstream/thought-forms.ts';

function sorted(pieces: readonly string[]) {
  const result = { text: '', thinking: '' };
  const filter = new ThoughtFilter((piece: Sorted) => {
    if (piece.type === 'textWasThinking') {
      result.thinking += result.text;
      result.text = '';
    } else result[piece.type] += piece.text;
  });
  for (const piece of pieces) filter.push(piece);
  filter.end();
  return { text: result.text, thinking: result.thinking.trim() };
}

const answer = 'The answer is 4.';
const thoughts = 'secret plan';

t.test('thoughts at the start of an answer are sorted out, in every form and cut at every place', async (t) => {
  const forms = thoughtForms.map(({ open, close }) => [open, close[0] ?? ''] as const);
  for (const [open, close] of [...forms, ['<THINK>', '</Think>'] as const]) {
    for (const whole of [`${open}\n${thoughts}\n${close}\n\n${answer}`, `\n ${open}${thoughts}${close}${answer}`]) {
      for (let at = 0; at <= whole.length; at += 1) {
        const pieces = [whole.slice(0, at), whole.slice(at)];
        t.same(sorted(pieces), { text: answer, thinking: thoughts }, `${whole} at ${at}`);
      }
      t.same(sorted([...whole]), { text: answer, thinking: thoughts }, `${whole}, each character`);
    }
  }
});

t.test('thoughts without a beginning are sorted out where only their end is marked', async (t) => {
  for (const whole of [
    `${thoughts}\n</think>\n\n${answer}`,
    `${thoughts}</think>${answer}`,
    `${thoughts}\n[/THINK]\n${answer}`,
  ]) {
    for (let at = 0; at <= whole.length; at += 1) {
      t.same(sorted([whole.slice(0, at), whole.slice(at)]), { text: answer, thinking: thoughts }, `${whole} at ${at}`);
    }
  }
});

t.test('the channels of gpt-oss leave only the final one as text', async (t) => {
  const whole = `<|channel|>analysis<|message|>${thoughts}<|end|><|start|>assistant<|channel|>final<|message|>${answer}<|return|>`;
  for (let at = 0; at <= whole.length; at += 1) {
    t.same(sorted([whole.slice(0, at), whole.slice(at)]), { text: answer, thinking: thoughts }, `at ${at}`);
  }
  t.same(sorted([`<|channel|>final<|message|>${answer}`]), { text: answer, thinking: '' });
});

t.test('several, empty and unended thoughts do not count as text', async (t) => {
  t.same(sorted([`<think>a</think>\n<think>b</think>${answer}`]), { text: answer, thinking: 'ab' });
  t.same(sorted([`<think>\n\n</think>\n\n${answer}`]), { text: answer, thinking: '' });
  t.same(sorted([`<think>${thoughts}`]), { text: '', thinking: thoughts });
});

t.test('an answer that names the tags is text', async (t) => {
  for (const text of [
    'Write `<think>` and `</think>` around it.',
    'The tag </think> ends thoughts.',
    'Use "</think>" here.',
    '```\na\n</think>\n```\nThat is it.',
    'First text.\n<think>later</think>\nmore',
    '<thinker>x</thinker>',
    '<',
    '   ',
    '',
  ]) {
    for (let at = 0; at <= text.length; at += 1)
      t.equal(sorted([text.slice(0, at), text.slice(at)]).text, text, `${text} at ${at}`);
  }
});

t.test('text without marks passes unchanged, cut anywhere', async (t) => {
  const text = fc.string({ unit: fc.constantFrom('a', ' ', '\n', '<', '/', '>', '[', 't', 'h', '`', '|') });
  const seed = process.env['ORATORIO_TEST_SEED'] === 'random' ? {} : { seed: 20_261_128 };
  fc.assert(
    fc.property(fc.array(text, { maxLength: 12 }), (pieces) => sorted(pieces).text === pieces.join('')),
    seed,
  );
  t.pass();
});
