const currency = { style: 'currency', currency: 'USD' } as const;
let formats: { readonly few: Intl.NumberFormat; readonly many: Intl.NumberFormat } | undefined;

/** Writes US dollars: `$0.0123`, `$1.23`, `$1,234.50`. */
export function dollars(usd: number): string {
  // On first use: the data of a locale takes ten milliseconds to load.
  formats ??= {
    few: new Intl.NumberFormat('en', { ...currency, maximumSignificantDigits: 3 }),
    many: new Intl.NumberFormat('en', currency),
  };
  return (usd < 100 ? formats.few : formats.many).format(usd);
}

/** Cost of a request or of a turn: `free`, or an amount. */
export const price = (usd: number): string => (usd === 0 ? 'free' : dollars(usd));
