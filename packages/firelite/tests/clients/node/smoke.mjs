// Drives a firelite server with the official Node.js client and prints one JSON object of what it saw.
// FIRESTORE_EMULATOR_HOST names the server; test_node_client.py asserts on the output.
import { createRequire } from "node:module";

const require = createRequire(process.env.SMOKE_MODULES + "/");
const { Firestore, FieldValue, Filter, Timestamp, AggregateField } = require("@google-cloud/firestore");

const db = new Firestore({ projectId: process.env.SMOKE_PROJECT });
const seen = {};
const ids = (snapshot) => snapshot.docs.map((doc) => doc.id);

async function documents() {
  const ref = db.doc("c/a");
  await ref.set({ n: 1, at: FieldValue.serverTimestamp(), when: Timestamp.fromMillis(5), list: [1, { x: null }] });
  await ref.update({ n: FieldValue.increment(4), "deep.path": "x", list: FieldValue.arrayUnion(2) });
  const read = await ref.get();
  seen.document = { n: read.get("n"), deep: read.get("deep"), list: read.get("list"), at: read.get("at") instanceof Timestamp };
  seen.create = await ref.create({}).catch((error) => error.code);
  seen.update = await db.doc("c/none").update({ n: 1 }).catch((error) => error.code);
  seen.stale = await ref.update({ n: 0 }, { lastUpdateTime: Timestamp.fromMillis(1) }).catch((error) => error.code);
  const batch = db.batch();
  for (const key of ["b", "c", "d"]) batch.set(db.doc(`c/${key}`), { n: key.charCodeAt(0), list: [key] });
  await batch.commit();
  const [first, missing] = await db.getAll(db.doc("c/b"), db.doc("c/none"));
  seen.getAll = [first.exists, missing.exists];
}

async function queries() {
  const c = db.collection("c");
  seen.range = ids(await c.where("n", ">", 97).orderBy("n", "desc").limit(2).get());
  seen.or = ids(await c.where(Filter.or(Filter.where("n", "==", 5), Filter.where("list", "array-contains", "d"))).get());
  seen.last = ids(await c.orderBy("n").limitToLast(2).get());
  seen.cursor = ids(await c.orderBy("n").startAfter(await c.doc("b").get()).get());
  seen.select = (await c.select("n").limit(1).get()).docs[0].data();
  const aggregate = c.where("n", ">", 90).aggregate({ count: AggregateField.count(), sum: AggregateField.sum("n") });
  seen.aggregate = (await aggregate.get()).data();
  await db.doc("x/y/group/1").set({});
  seen.group = ids(await db.collectionGroup("group").get());
  seen.collections = (await db.listCollections()).map((found) => found.id);
  seen.listed = (await db.collection("x").listDocuments()).map((found) => found.id);
}

async function transactions() {
  const ref = db.doc("counters/t");
  await ref.set({ n: 0 });
  await Promise.all(
    Array.from({ length: 8 }, () =>
      db.runTransaction(async (transaction) => {
        const read = await transaction.get(ref);
        transaction.update(ref, { n: read.get("n") + 1 });
      }),
    ),
  );
  seen.counter = (await ref.get()).get("n");
  seen.readOnly = await db.runTransaction(async (t) => (await t.get(db.collection("counters"))).size, { readOnly: true });
}

function listening(target, describe, count, act) {
  return new Promise((resolve, reject) => {
    const told = [];
    const stop = target.onSnapshot((snapshot) => {
      told.push(describe(snapshot));
      if (told.length === count) {
        stop();
        resolve(told);
      } else {
        act[told.length - 1]().catch(reject);
      }
    }, reject);
  });
}

async function listeners() {
  const changes = (snapshot) => snapshot.docChanges().map((change) => `${change.type} ${change.doc.id}`);
  const w = db.collection("w");
  seen.query = await listening(w.where("n", ">", 0).orderBy("n"), changes, 4, [
    () => w.doc("a").set({ n: 1 }),
    () => w.doc("a").update({ n: 2 }),
    () => w.doc("a").delete(),
  ]);
  seen.watched = await listening(w.doc("z"), (snapshot) => snapshot.exists, 3, [
    () => w.doc("z").set({}),
    () => w.doc("z").delete(),
  ]);
}

async function bulk() {
  const writer = db.bulkWriter();
  for (let n = 0; n < 30; n += 1) void writer.set(db.doc(`bulk/${n}`), { n });
  await writer.close();
  seen.bulk = (await db.collection("bulk").count().get()).data().count;
  await db.recursiveDelete(db.collection("bulk"));
  seen.deleted = (await db.collection("bulk").count().get()).data().count;
  const parts = [];
  for await (const part of db.collectionGroup("c").getPartitions(2)) parts.push(part);
  seen.partitions = parts.length >= 1;
}

await documents();
await queries();
await transactions();
await listeners();
await bulk();
await db.terminate();
console.log(JSON.stringify(seen));
