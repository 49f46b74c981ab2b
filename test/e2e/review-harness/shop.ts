/** A small shop whose changes have faults that the reviewer knows. */
import type { KnownFault } from './reviewer.ts';

const total = (condition: string) => `export function total(prices: readonly number[]): number {
  let sum = 0;
  for (let at = 0; ${condition}; at += 1) {
    sum += prices[at] ?? Number.NaN;
  }
  return sum;
}
`;

export const onMain = {
  'README.md': '# Shop\n',
  'src/total.ts': `${total('at < prices.length')}
export const isFree = (price: number): boolean => price === 0;
`,
};

/** A loop that runs too far, and a new file with two more faults. */
export const firstChange = {
  'src/total.ts': `${total('at <= prices.length')}
export const isFree = (price: number): boolean => price === 0;
`,
  'src/discount.ts': `export function discount(price: number, percent: number): number {
  if (percent > 100)
    console.log('strange');
  return price * (1 - percent / 100);
}

export const parse = (text: string): unknown => eval(text);
`,
};

/** The loop is mended, and there is something new. */
export const secondChange = {
  'src/total.ts': onMain['src/total.ts'],
  'src/discount.ts': `${firstChange['src/discount.ts']}
export const half = (price: number): number => price / 3;
`,
};

export const faults = {
  loop: {
    lines: '  for (let at = 0; at <= prices.length; at += 1) {',
    title: 'The loop runs one step too far',
    severity: 'major',
    better: '  for (let at = 0; at < prices.length; at += 1) {',
  },
  percent: {
    lines: "  if (percent > 100)\n    console.log('strange');",
    title: 'A discount above 100 % is only logged',
    severity: 'minor',
  },
  evaluation: {
    lines: 'export const parse = (text: string): unknown => eval(text);',
    title: 'Text of a customer is evaluated',
    severity: 'critical',
  },
  half: {
    lines: 'export const half = (price: number): number => price / 3;',
    title: 'Half is not a third',
    severity: 'major',
    better: 'export const half = (price: number): number => price / 2;',
  },
} as const satisfies Record<string, KnownFault>;

/** Where the lines are in a file, from 1: the last of them. */
export function lineOf(text: string, { lines }: KnownFault): number {
  const before = text.slice(0, text.indexOf(lines));
  return before.split('\n').length + lines.split('\n').length - 1;
}
