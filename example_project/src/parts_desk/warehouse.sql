CREATE TABLE parts (
    number TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    pack_size INTEGER NOT NULL
);

CREATE TABLE customers (
    name TEXT PRIMARY KEY
);

CREATE TABLE stock (
    part TEXT PRIMARY KEY REFERENCES parts (number),
    free INTEGER NOT NULL CONSTRAINT enough_in_stock CHECK (free >= 0)
);

CREATE TABLE reservations (
    id INTEGER PRIMARY KEY,
    part TEXT NOT NULL REFERENCES parts (number),
    quantity INTEGER NOT NULL CONSTRAINT positive_quantity CHECK (quantity > 0),
    customer TEXT NOT NULL REFERENCES customers (name)
);

CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    part TEXT NOT NULL REFERENCES parts (number),
    quantity INTEGER NOT NULL CONSTRAINT positive_quantity CHECK (quantity > 0),
    deliver_on TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'shipped', 'cancelled'))
);

INSERT INTO parts VALUES
    ('BRG-6204', 'ball bearing 6204', 10),
    ('BLT-M8-40', 'hex bolt M8x40', 100),
    ('NUT-M8', 'hex nut M8', 100),
    ('SEAL-35', 'shaft seal 35 mm', 5),
    ('BELT-A42', 'V-belt A42', 1),
    ('MTR-075', 'motor 0.75 kW', 1),
    ('CHN-08B', 'roller chain 08B', 5),
    ('FLT-G4', 'filter mat G4', 20);

INSERT INTO customers VALUES
    ('Kestrel Mills'), ('Northfield Dairy'), ('Aldgate Press');

INSERT INTO stock VALUES
    ('BRG-6204', 140), ('BLT-M8-40', 1200), ('NUT-M8', 380), ('SEAL-35', 25),
    ('BELT-A42', 9), ('MTR-075', 4), ('CHN-08B', 30), ('FLT-G4', 0);

INSERT INTO orders VALUES
    (501, 'FLT-G4', 40, '2027-03-02', 'shipped'),
    (502, 'BRG-6204', 50, '2027-03-09', 'shipped'),
    (503, 'CHN-08B', 10, '2027-04-06', 'open'),
    (504, 'BELT-A42', 6, '2027-03-16', 'shipped'),
    (505, 'SEAL-35', 20, '2027-04-13', 'cancelled'),
    (506, 'MTR-075', 2, '2027-04-20', 'open'),
    (507, 'BELT-A42', 8, '2027-04-27', 'open');
