/** The bundled repository: a small shop, and a change with faults that the demo model recognises. */

/** Files by path, at a commit. */
export type Files = Readonly<Record<string, string>>;

const cart = (condition: string) => `/** Sum of a cart in cents. */
export function total(books) {
  let sum = 0;
  for (let at = 0; at ${condition} books.length; at += 1) {
    sum += books[at].price;
  }
  return sum;
}
`;

export const onMain: Files = {
  'README.md': '# Bookshop\n\nSample repository of `oratorio backend --demo`.\n',
  'package.json': '{ "name": "bookshop", "private": true, "type": "module" }\n',
  'src/cart.js': cart('<'),
  'src/orders.js': `/** Orders of a customer, newest first. */
export const ordersOf = (db, customer) =>
  db.query('SELECT * FROM orders WHERE customer = ? ORDER BY placed DESC', [customer]);
`,
};

export const onChange: Files = {
  ...onMain,
  'src/cart.js': `${cart('<=')}
/** Shipping is free from 30 euros. */
export const shipping = (sum) => (sum >= 3000 ? 0 : 390);
`,
  'src/orders.js': `${onMain['src/orders.js']}
/** Orders whose title contains some words. */
export const searchOrders = (db, words) =>
  db.query(\`SELECT * FROM orders WHERE title LIKE '%\${words}%'\`);
`,
  'src/discount.js': `/** Applies the formula of a voucher, such as "price * 0.9". */
export function discounted(price, voucher) {
  if (price < 0) throw new RangeError('a price is not negative');
  return eval(voucher.formula.replaceAll('price', String(price)));
}
`,
};

export const pull = {
  number: 1,
  title: 'Add vouchers, free shipping and a search for orders',
  body: 'Vouchers carry a formula. Shipping is free from 30 euros. Orders can be searched by title.',
  author: 'ada',
  headRef: 'vouchers',
} as const;
