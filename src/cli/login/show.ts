import { type LiveTest, parserAdvice } from '../../agent/index.ts';
import type { ExitName } from '../exit-codes.ts';
import type { Output } from '../output.ts';

/** Prints the outcome of a live test. */
export function showTest(output: Output, test: LiveTest): void {
  const { green } = output.colors;
  if (test.ok) {
    output.line(`${green('✔')} ${test.model} answers; first words after ${test.firstTokenMs} ms`);
    if (test.toolCalls === 'called') output.line(`${green('✔')} ${test.model} calls tools`);
    else output.warn(test.toolCalls === 'printed' ? printedWarning : noCallWarning);
  } else output.failure({ what: test.message, hint: test.hint, context: '' });
}

const printedWarning = `The model printed its tool call as text. ${parserAdvice}`;
const noCallWarning = 'The model did not call the offered tool: an agent needs a model that can call tools.';

/** Exit code of a failed test. */
export const exitOf = ({ code }: Extract<LiveTest, { ok: false }>): ExitName =>
  code === 'upstreamUnauthorized' ? 'credentials' : 'failure';

/** Hint that running agent servers keep their settings. */
export const restartHint = 'Agent servers that run use it after: oratorio restart';
