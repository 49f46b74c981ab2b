/** Answers of the demo model to texts without a step. */

export const label = 'Demo model (offline, no AI):';
const countLimit = 1_000;

export const abilities =
  'I can greet you, repeat your words ("echo …"), count ("count to 20"), and use the tools that I am offered, one step ' +
  'to a line or joined by "then":\n' +
  '  read FILE [lines 3-7] · list DIR · find "*.ts" in DIR · grep "text" in DIR\n' +
  '  write FILE: text · append to FILE: text · replace "a" with "b" in FILE\n' +
  '  run: command · fetch URL · search the web for words · delegate: task · call TOOL {"json": true}\n' +
  '  think about something · say something\n' +
  'For real answers connect a model: oratorio login. See the model in force: oratorio model.';

export interface Talk {
  readonly thought: string;
  readonly answer: string;
}

/** The first rule that fits answers. */
const rules: readonly { readonly when: RegExp; readonly say: (found: RegExpExecArray) => Talk }[] = [
  {
    when: /^\s*echo\s+([\s\S]+)$/i,
    say: ([, words = '']) => ({ thought: 'I am asked to repeat something.', answer: words.trim() }),
  },
  {
    when: /\bcount\s+(?:up\s+)?to\s+(\d{1,15})\b/i,
    say: ([, goal = '0']) => countTo(Number(goal)),
  },
  {
    when: /^\s*(?:hello|hi|hey|good (?:morning|afternoon|evening)|greetings)\b/i,
    say: () => ({ thought: 'I am greeted, so I greet back.', answer: `Hello! ${abilities}` }),
  },
  {
    when: /\b(?:help|what can you do|who are you|what are you)\b/i,
    say: () => ({ thought: 'I am asked about my purpose.', answer: abilities }),
  },
  {
    when: /^\s*$/,
    say: () => ({ thought: 'There are no words in this message.', answer: `You said nothing. ${abilities}` }),
  },
];

/** @returns an answer to every text */
export function answerTo(asked: string): Talk {
  for (const { when, say } of rules) {
    const found = when.exec(asked);
    if (found) return say(found);
  }
  const words = asked.trim();
  const quote = words.length > 500 ? `${words.slice(0, 500).replace(/[\uD800-\uDBFF]$/, '')}…` : words;
  return {
    thought: 'None of my rules fits.',
    answer: `You said: ${quote}\n\nI do not understand that: I only follow a few rules and cannot think. ${abilities}`,
  };
}

function countTo(goal: number): Talk {
  const end = Math.min(goal, countLimit);
  const numbers = Array.from({ length: end }, (_, index) => index + 1).join(' ');
  const rest = goal > countLimit ? ` … and so on; I stop at ${countLimit}.` : '';
  return {
    thought: `I am asked to count to ${goal}.`,
    answer: end === 0 ? 'Done: there is nothing to count.' : numbers + rest,
  };
}
