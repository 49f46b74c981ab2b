const few = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumSignificantDigits: 3 });
const many = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD' });

/** Writes US dollars: `$0.0123`, `$1.23`, `$1,234.50`. */
export const dollars = (usd: number): string => (usd < 100 ? few : many).format(usd);
